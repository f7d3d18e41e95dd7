"""Signatures by a library that shares no code with us (securesystemslib, and the cryptography package below it), in bundles by
the sigstore project's own definition of them (sigstore-models).

    signatures.py sign DIGEST BUILDER   a new key; a simple signature, a bundle and a provenance of the digest, as JSON
    signatures.py verify < JSON         {public_key_pem, payload, signature, envelope?, bundle?}: exits 0 if all are good
"""

import base64
import json
import sys

from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key, SECP256R1
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, Signature, SSlibKey
from sigstore_models.bundle.v1 import Bundle

IN_TOTO = "application/vnd.in-toto+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"


def statement(digest, predicate_type, predicate):
    subject = [{"name": "image", "digest": {"sha256": digest.removeprefix("sha256:")}}]
    body = {"_type": "https://in-toto.io/Statement/v1", "subject": subject}
    return json.dumps(body | {"predicateType": predicate_type, "predicate": predicate}).encode()


def enveloped(signer, payload):
    envelope = Envelope(payload=payload, payload_type=IN_TOTO, signatures={})
    envelope.sign(signer)
    return envelope.to_dict()


def bundled(signer, payload):
    material = {"publicKey": {"hint": signer.public_key.keyid}, "tlogEntries": []}
    bundle = {"mediaType": BUNDLE, "verificationMaterial": material, "dsseEnvelope": enveloped(signer, payload)}
    return json.loads(Bundle.from_json(json.dumps(bundle)).to_json())


def sign(digest, builder):
    signer = CryptoSigner(generate_private_key(SECP256R1()))
    critical = {"identity": {"docker-reference": "any"}, "image": {"docker-manifest-digest": digest}}
    critical["type"] = "cosign container image signature"
    payload = json.dumps({"critical": critical, "optional": None}).encode()
    provenance = {"buildDefinition": {}, "runDetails": {"builder": {"id": builder}}}
    print(json.dumps({
        "public_key_pem": signer.public_key.keyval["public"],
        "payload": payload.decode(),
        "signature": base64.b64encode(bytes.fromhex(signer.sign(payload).signature)).decode(),
        "bundle": bundled(signer, statement(digest, "https://sigstore.dev/cosign/sign/v1", {})),
        "provenance": enveloped(signer, statement(digest, "https://slsa.dev/provenance/v1", provenance)),
    }))


def verify(given):
    key = SSlibKey.from_crypto(load_pem_public_key(given["public_key_pem"].encode()))
    signature = base64.b64decode(given["signature"]).hex()
    key.verify_signature(Signature(key.keyid, signature), given["payload"].encode())
    if "envelope" in given:
        verify_envelope(key, given["envelope"])
    if "bundle" in given:
        Bundle.from_json(json.dumps(given["bundle"]))
        verify_envelope(key, given["bundle"]["dsseEnvelope"])


def verify_envelope(key, told):
    envelope = Envelope.from_dict(told)
    # Signers may leave the key's name out; the library looks signatures up by it.
    envelope.signatures = {key.keyid: Signature(key.keyid, one.signature) for one in envelope.signatures.values()}
    envelope.verify([key], 1)


if sys.argv[1] == "sign":
    sign(sys.argv[2], sys.argv[3])
else:
    verify(json.load(sys.stdin))
