"""Cursors are the server's own: whoever makes one up is refused, however well it is written. A request that is meant to be
accepted therefore brings none; those that are meant to be refused bring whatever they like. Nor does it ask for an answer to be
held back: a run that waits for an hour would hold it as long as it may."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    meant_well = case.meta is not None and case.meta.generation.mode.is_positive
    if meant_well and case.query:
        case.query.pop("cursor", None)
        if "wait" in case.query:
            case.query["wait"] = "10ms"
