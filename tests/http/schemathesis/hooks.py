"""Cursors are the server's own: whoever makes one up is refused, however well it is written. A request that is meant to be
accepted therefore brings none; those that are meant to be refused bring whatever they like."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    meant_well = case.meta is not None and case.meta.generation.mode.is_positive
    if meant_well and case.query and "cursor" in case.query:
        del case.query["cursor"]
