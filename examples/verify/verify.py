#!/usr/bin/env python3
"""Verifies an offline license lease, with Python 3.9 or newer and the package `cryptography`.

    python3 verify.py [--pin FINGERPRINT] [--held FILE] [--now TIME] KEYSET LEASE
    python3 verify.py --vectors vectors.json

KEYSET is the document at /.well-known/license-keys.json of the issuer: a JWK set, or a chain of
roots and a signed keyset. README.md explains the options, the output and the exit codes.

Sources: DSSE 1.0.2 (envelopes and what is signed), RFC 8032 (Ed25519), RFC 8037 (its keys as JWK),
RFC 7638 (ids of keys), The Update Framework (roots and keysets).
"""
import argparse
import base64
import hashlib
import json
import re
import sys
import time
from calendar import timegm
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LEASE_TYPE = "application/vnd.service-local.license-lease.v1+json"
ROOT_TYPE = "application/vnd.service-local.license-root.v1+json"
KEYSET_TYPE = "application/vnd.service-local.license-keyset.v1+json"

MAX_BYTES = 65_536
MAX_DEPTH = 16
MAX_ENTITLEMENTS = 64
MAX_LIFETIME_SECONDS = 5 * 366 * 86_400
CLOCK_TOLERANCE_SECONDS = 300


class Refused(Exception):
    """The lease or keyset must not be used. `reason` is a stable code, `detail` is for people."""

    def __init__(self, reason, detail):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


# Strict JSON. RFC 8259 does not define the meaning of a repeated member, so it is refused.


def strict_json(data, what):
    """Parses bytes. Numbers become floats, as in JavaScript."""
    if len(data) > MAX_BYTES:
        raise Refused("too_large", f"{what} has {len(data)} of {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not_utf8", f"{what} is not UTF-8") from None

    def members(pairs):
        names = dict(pairs)
        if len(names) < len(pairs):
            raise Refused("duplicate_member", f"{what} names a member twice")
        if "__proto__" in names:
            raise Refused("forbidden_member", f'{what} has a member "__proto__"')
        return names

    def constant(name):
        raise ValueError(f"{name} is not JSON")

    try:
        value = json.loads(
            text, object_pairs_hook=members, parse_int=float, parse_constant=constant
        )
        check_values(value, what, 1)
    except RecursionError:
        raise Refused("nested_too_deep", f"{what} has more than {MAX_DEPTH} levels") from None
    except ValueError:  # or a string with half a surrogate pair, see RFC 7493, section 2.1
        raise Refused("not_json", f"{what} is empty, cut short or otherwise not JSON") from None
    return value


def check_values(value, what, depth):
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, (dict, list)):
        if depth > MAX_DEPTH:
            raise Refused("nested_too_deep", f"{what} has more than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            for name in value:
                name.encode("utf-8")
        for item in value.values() if isinstance(value, dict) else value:
            check_values(item, what, depth + 1)


def is_text(value, pattern):
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def is_id(value):
    return is_text(value, r"[!-~]{1,128}")


def is_thumbprint(value):
    return is_text(value, r"[A-Za-z0-9_-]{43}")


def is_whole_number(value, least):
    """Accepts numbers up to 2^53 - 1, beyond which JSON numbers are not exact."""
    return isinstance(value, float) and value.is_integer() and least <= value <= 2**53 - 1


def parse_time(value):
    """Seconds since the Unix epoch of a time such as 2026-01-02T03:04:05Z; None for other forms."""
    form = r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})Z"
    match = re.fullmatch(form, value) if isinstance(value, str) else None
    try:
        return match and timegm(datetime(*map(int, match.groups())).timetuple())
    except ValueError:  # a day that does not exist
        return None


# Base64 in its canonical form. Decoders accept other forms, so the result is encoded again and
# compared.


def from_base64(value, what):
    """RFC 4648, section 4, with padding."""
    try:
        data = base64.b64decode(value, validate=True)
    except ValueError:
        data = None
    if data is None or base64.b64encode(data).decode() != value:
        raise Refused("bad_base64", f"{what} is not base64 with padding")
    return data


def to_base64url(data):
    """RFC 4648, section 5, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(value, what):
    try:
        data = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        data = None
    if data is None or to_base64url(data) != value:
        raise Refused("bad_base64", f"{what} is not base64url without padding")
    return data


# Ed25519. Libraries differ in the malformed keys and signatures that they accept. This verifier
# refuses those that RFC 8032, sections 5.1.3 and 5.1.7, excludes. It also refuses keys of small
# order, for which anyone can sign any text (Chalkias et al., "Taming the Many EdDSAs", 2020).

P = 2**255 - 19  # elements of the field
L = 2**252 + 27742317777372353535851937790883648493  # order of the base point
D = -121665 * pow(121666, P - 2, P) % P  # the curve is -x^2 + y^2 = 1 + D x^2 y^2


def y_of(point):
    return int.from_bytes(point, "little") & (2**255 - 1)


def is_canonical(point):
    """Whether y is reduced, and x = 0 is not marked as negative."""
    y = y_of(point)
    return y < P and not (y in (1, P - 1) and point[31] >= 0x80)


def check_key(key, what):
    if not is_canonical(key):
        raise Refused("key_not_canonical", what)
    y2 = y_of(key) ** 2 % P
    numerator, denominator = y2 - 1, D * y2 + 1  # of x^2
    if pow(numerator * denominator % P, (P - 1) // 2, P) > 1:  # x^2 is not a square
        raise Refused("key_not_on_curve", what)
    # The order is 1 or 2 where x = 0, 4 where y = 0, and 8 where x^2 = -y^2.
    if y2 * numerator * (numerator + y2 * denominator) % P == 0:
        raise Refused("key_small_order", what)


def check_signature(key, signature, message, what):
    if len(signature) != 64:
        raise Refused("signature_length", what)
    if int.from_bytes(signature[32:], "little") >= L:  # each signature would have two forms
        raise Refused("signature_scalar", what)
    if not is_canonical(signature[:32]):
        raise Refused("signature_point", what)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        raise Refused("bad_signature", what) from None


# Envelopes (https://github.com/secure-systems-lab/dsse/blob/v1.0.2/envelope.md). They have only the
# three members, and each signature has a key id.


def pre_auth_encoding(payload_type, payload):
    """Returns the signed bytes: payload and type, so that a signature counts for one type only."""
    return b"DSSEv1 %d %s %d %s" % (len(payload_type), payload_type.encode(), len(payload), payload)


def members_of(value, names, what):
    if not isinstance(value, dict) or set(value) != set(names):
        raise Refused("not_an_envelope", f"{what} is not an object with only {', '.join(names)}")
    return [value[name] for name in names]


def text_of(value, what):
    if not isinstance(value, str):
        raise Refused("not_an_envelope", f"{what} is not a string")
    return value


def read_envelope(value, payload_type, what, max_signatures):
    """Returns the payload and the unverified signatures by key id."""
    names = ("payloadType", "payload", "signatures")
    stated_type, payload, signatures = members_of(value, names, what)
    if text_of(stated_type, "payloadType") != payload_type:
        raise Refused("wrong_payload_type", f"{what} is not of the type {payload_type}")
    if not isinstance(signatures, list) or not 1 <= len(signatures) <= max_signatures:
        raise Refused("not_an_envelope", f"{what} has not 1 to {max_signatures} signatures")
    by_key = {}
    for signature in signatures:
        key_id, sig = members_of(signature, ("keyid", "sig"), "a signature")
        text_of(key_id, "keyid")
        by_key.setdefault(key_id, from_base64(text_of(sig, "sig"), "sig"))
    if len(by_key) < len(signatures):
        raise Refused("not_an_envelope", f"two signatures of {what} name the same key")
    return from_base64(text_of(payload, "payload"), "payload"), by_key


def verified_signers(payload_type, payload, signatures, keys, what):
    """Returns the ids of the keys that signed. Refuses an invalid signature of a known key."""
    message = pre_auth_encoding(payload_type, payload)
    signers = [key_id for key_id in signatures if key_id in keys]
    for key_id in signers:
        check_signature(keys[key_id], signatures[key_id], message, f"{what}: {key_id}")
    return signers


# Keys (RFC 7517, RFC 8037). A set of trusted keys is a dict from key id to the 32 bytes of the key.


def key_id_of(x):
    """RFC 7638 thumbprint of an Ed25519 key."""
    return to_base64url(hashlib.sha256(b'{"crv":"Ed25519","kty":"OKP","x":"%s"}' % x.encode()).digest())


def import_keys(keys):
    if not isinstance(keys, list):
        raise Refused("invalid_keyset", "the keyset has no list of keys")
    trusted, seen = {}, set()
    for jwk in keys:
        if not isinstance(jwk, dict):
            raise Refused("invalid_keyset", "a key is not an object")
        if "d" in jwk:
            raise Refused("private_key", "the keyset contains the private part of a key")
        if (jwk.get("kty"), jwk.get("crv")) != ("OKP", "Ed25519"):
            continue
        key_id, key = import_key(jwk)
        if key_id in seen:
            raise Refused("invalid_keyset", f"the key {key_id} is listed twice")
        seen.add(key_id)
        if "status" not in jwk or jwk["status"] in ("active", "retiring"):
            trusted[key_id] = key
    if not trusted:
        raise Refused("invalid_keyset", "the keyset has no Ed25519 key that may verify")
    return trusted


def import_key(jwk):
    x = jwk.get("x")
    if not isinstance(x, str):
        raise Refused("invalid_keyset", "x of a key is not a string")
    key = from_base64url(x, "x of a key")
    if len(key) != 32:
        raise Refused("invalid_keyset", f"x of a key has {len(key)} bytes instead of 32")
    check_key(key, f"the key {x}")
    key_id = key_id_of(x)
    if jwk.get("kid") != key_id:
        raise Refused("key_id_mismatch", f"kid of a key is not {key_id}")
    return key_id, key


# Roots and keysets, by the rules of The Update Framework
# (https://theupdateframework.github.io/specification/latest/, section 5.3).


def check_document(claims, what):
    if not isinstance(claims, dict):
        raise Refused("invalid_root", f"{what} is not an object")
    issued, expires = parse_time(claims.get("issued_at")), parse_time(claims.get("expires_at"))
    if not (
        is_whole_number(claims.get("version"), 1)
        and is_id(claims.get("issuer"))
        and issued is not None
        and expires is not None
        and issued < expires
    ):
        raise Refused("invalid_root", f"{what} lacks a valid version, issuer or time")


def check_threshold(payload_type, payload, signatures, signers, what):
    keys, threshold = signers
    count = len(verified_signers(payload_type, payload, signatures, keys, what))
    if count < threshold:
        raise Refused("not_vouched_for", f"{what} has {count} of {threshold} signatures needed")


def verify_roots(roots, pin):
    """Returns the newest root: its claims, keys, and lineage (fingerprints, oldest first)."""
    if not isinstance(roots, list) or not roots:
        raise Refused("invalid_root", "the roots are not a list")
    envelopes = [read_envelope(root, ROOT_TYPE, "a root", 16) for root in roots]
    fingerprints = [to_base64url(hashlib.sha256(payload).digest()) for payload, _ in envelopes]
    if pin is not None and pin not in fingerprints:
        raise Refused("other_root", f"none of the roots is {pin}")
    first = 0 if pin is None else fingerprints.index(pin)
    former = None
    for payload, signatures in envelopes[first:]:
        former = next_root(former, payload, signatures)
    return {**former, "lineage": fingerprints[first:]}


def next_root(former, payload, signatures):
    """Requires signatures by a threshold of the root's keys, and of those of the root before it."""
    claims = strict_json(payload, "a root")
    check_document(claims, "a root")
    keys, threshold = import_keys(claims.get("keys")), claims.get("threshold")
    if not is_whole_number(threshold, 1) or threshold > len(keys):
        raise Refused("invalid_root", "the threshold of a root does not fit its keys")
    check_threshold(ROOT_TYPE, payload, signatures, (keys, threshold), "a root")
    if former is not None:
        if claims["version"] != former["claims"]["version"] + 1:
            raise Refused("root_rollback", "the versions of the roots do not rise by one")
        if claims["issuer"] != former["claims"]["issuer"]:
            raise Refused("other_issuer", "two roots of one chain have different issuers")
        signers = (former["keys"], former["claims"]["threshold"])
        check_threshold(ROOT_TYPE, payload, signatures, signers, "a root")
    return {"claims": claims, "keys": keys}


def verify_keyset(keyset, signers):
    """Returns the claims of a signed keyset and its keys."""
    payload, signatures = read_envelope(keyset, KEYSET_TYPE, "the keyset", 16)
    check_threshold(KEYSET_TYPE, payload, signatures, signers, "the keyset")
    claims = strict_json(payload, "the keyset")
    check_document(claims, "the keyset")
    if "root" in claims and not is_thumbprint(claims["root"]):
        raise Refused("invalid_root", "root in the keyset is not a fingerprint")
    keys, retired = import_keys(claims.get("keys")), claims.get("retired")
    if not isinstance(retired, list) or not all(map(is_id, retired)):
        raise Refused("invalid_root", "retired in the keyset is not a list of key ids")
    if any(key_id in keys for key_id in retired):
        raise Refused("invalid_root", "the keyset lists a key as retired and as in use")
    return claims, keys


# Trust: the keys that may verify leases. `held` is what `verify_trust` returned for the last
# accepted document; a verifier that keeps it refuses older documents and other roots.


def verify_trust(data, now, pin=None, held=None):
    """Returns {"keys", "root", "keyset", "by"}; `now` is in seconds since the Unix epoch."""
    document = strict_json(data, "the keyset")
    if isinstance(document, dict) and "roots" in document:
        return signed_trust(document["roots"], document.get("keyset"), now, pin, held)
    if pin is not None or (held and held["root"]):
        raise Refused("not_vouched_for", "the keyset is not signed by the trusted root")
    if not isinstance(document, dict):
        raise Refused("invalid_keyset", "the keyset is not an object")
    return bare_trust(document, now, held)


def signed_trust(roots, keyset, now, pin, held):
    root = verify_roots(roots, pin)
    former = held and held["root"]
    if former:
        check_descent(former, root, roots)
    claims, keys = verify_keyset(keyset, (root["keys"], root["claims"]["threshold"]))
    if held and not former and pin is None:
        # A held key vouches for a first root by signing a keyset that names this root.
        verify_keyset(keyset, (held["keys"], 1))
        if claims.get("root") not in root["lineage"]:
            raise Refused("not_vouched_for", "the keyset does not name this root")
    if claims["issuer"] != root["claims"]["issuer"]:
        raise Refused("other_issuer", "the keyset and its root have different issuers")
    check_succession(claims, held)
    ends = (claims["expires_at"], root["claims"]["expires_at"])
    check_new_keys(keys, held, min(map(parse_time, ends)) <= now)
    by = "pin" if pin is not None else "held" if held else "first_contact"
    return {"keys": keys, "root": root, "keyset": claims, "by": by}


def check_descent(former, root, roots):
    """Requires the new root to be the held one or its descendant. A pin may name a later root."""
    held = former["lineage"][-1]
    if held in root["lineage"]:
        return
    try:
        verify_roots(roots, held)
    except Refused:
        if root["lineage"][-1] in former["lineage"]:
            raise Refused("root_rollback", "the root is older than the trusted one") from None
        raise Refused("other_root", "the root does not descend from the trusted one") from None


def bare_trust(document, now, held):
    """Judges keys without a root: held keys vouch for new ones by signing the keyset."""
    keys, keyset = import_keys(document.get("keys")), document.get("keyset")
    if not held:
        return {"keys": keys, "root": None, "keyset": own_claims(keyset, keys), "by": "first_contact"}
    if "keyset" not in document:
        if any(key_id not in held["keys"] for key_id in keys):
            raise Refused("not_vouched_for", "no trusted key signs a new key")
        return {"keys": keys, "root": None, "keyset": held["keyset"], "by": "held"}
    claims, keys = verify_keyset(keyset, (held["keys"], 1))
    check_succession(claims, held)
    check_new_keys(keys, held, parse_time(claims["expires_at"]) <= now)
    return {"keys": keys, "root": None, "keyset": claims, "by": "held"}


def own_claims(keyset, keys):
    """Claims of a keyset that one of its own keys signed; its version must not fall from now on."""
    try:
        return verify_keyset(keyset, (keys, 1))[0]
    except Refused:
        return None


def check_succession(claims, held):
    """Refuses a lower version, and another document with the same version."""
    former = held and held["keyset"]
    if not former:
        return
    if claims["issuer"] != former["issuer"]:
        raise Refused("other_issuer", "the keyset belongs to another issuer than the trusted one")
    is_other = json.dumps(claims, sort_keys=True) != json.dumps(former, sort_keys=True)
    if claims["version"] < former["version"] or (claims["version"] == former["version"] and is_other):
        raise Refused("keyset_rollback", "the keyset is older than the trusted one")


def check_new_keys(keys, held, is_expired):
    """Refuses an expired document only if it adds a key, so that its expiry ends no lease."""
    if is_expired and any(key_id not in (held["keys"] if held else {}) for key_id in keys):
        raise Refused("keyset_expired", "the keyset has expired and adds a key")


# Leases.


def is_entitlements(value):
    return (
        isinstance(value, list)
        and len(value) <= MAX_ENTITLEMENTS
        and all(is_text(name, r"[a-z][a-z0-9_.:-]{0,63}") for name in value)
        and len(set(value)) == len(value)
    )


def is_time(value):
    return parse_time(value) is not None


REQUIRED_CLAIMS = {
    "lease_id": is_id,
    "deployment_id": is_id,
    "entitlements": is_entitlements,
    "issued_at": is_time,
    "expires_at": is_time,
    "grace_ends_at": is_time,
    "ttl_seconds": lambda value: is_whole_number(value, 1),
    "grace_period_seconds": lambda value: is_whole_number(value, 0),
    "public_key_id": is_thumbprint,
    "issuer": is_id,
}
OPTIONAL_CLAIMS = {
    "customer_id": is_id,
    "renewal_id": is_id,
    "previous_lease_id": is_id,
    "device_thumbprint": is_thumbprint,
    "product": is_id,
    "binding": lambda value: value in ("none", "device", "machine"),
    "machine_hash": is_thumbprint,
}
BOUND_TO = {"device": "device_thumbprint", "machine": "machine_hash"}


def verify_lease(data, keys):
    """Returns the claims of a lease that one of the keys signed. Does not check the time."""
    envelope = strict_json(data, "the lease")
    payload, signatures = read_envelope(envelope, LEASE_TYPE, "the lease", 4)
    signers = verified_signers(LEASE_TYPE, payload, signatures, keys, "the lease")
    if not signers:
        raise Refused("unknown_key", "no key of the keyset signed the lease")
    claims = check_claims(strict_json(payload, "the payload"))
    if claims["public_key_id"] not in signers:
        raise Refused("key_mismatch", "the lease names another key than the one that signed it")
    return claims


def check_claims(payload):
    """Checks the claims, and omits members that this version does not know."""
    if not isinstance(payload, dict):
        raise Refused("invalid_claims", "the payload is not an object")
    rules = {**REQUIRED_CLAIMS, **OPTIONAL_CLAIMS}
    for name, accepts in rules.items():
        if name not in payload and name in OPTIONAL_CLAIMS:
            continue
        if name not in payload or not accepts(payload[name]):
            is_bad_time = name in payload and accepts is is_time
            reason = "invalid_time" if is_bad_time else "invalid_claims"
            raise Refused(reason, f"{name} is missing or has a wrong form")
    ttl, grace = payload["ttl_seconds"], payload["grace_period_seconds"]
    issued, expires, ends = (
        parse_time(payload[name]) for name in ("issued_at", "expires_at", "grace_ends_at")
    )
    if expires - issued != ttl or ends - expires != grace:
        raise Refused("inconsistent_claims", "the times of the lease do not add up")
    if ttl + grace > MAX_LIFETIME_SECONDS:
        raise Refused("invalid_claims", f"the lease lasts for over {MAX_LIFETIME_SECONDS} seconds")
    bound_to = BOUND_TO.get(payload.get("binding"))
    if bound_to is not None and bound_to not in payload:
        raise Refused("invalid_claims", f"the lease is bound, and {bound_to} is missing")
    return {name: payload[name] for name in rules if name in payload}


def check_use(claims, product=None, device_thumbprints=(), machine_hash=None):
    """Refuses a lease of another product, device or machine.

    `device_thumbprints` are those of the device keys whose private part is on this machine, and
    `machine_hash` is `hash_of_machine` of this machine.
    """
    if product is not None and claims.get("product", product) != product:
        raise Refused("other_product", f"the lease is for {claims['product']}")
    binding = claims.get("binding")
    if binding == "device" and not device_thumbprints:
        raise Refused("no_device_key", "the lease is bound to a device, and no device key is here")
    if binding == "device" and claims["device_thumbprint"] not in device_thumbprints:
        raise Refused("other_device", f"the lease is for the device {claims['device_thumbprint']}")
    if binding == "machine" and machine_hash is None:
        raise Refused("no_machine_id", "the lease is bound to a machine, and the id of this one is unknown")
    if binding == "machine" and claims["machine_hash"] != machine_hash:
        raise Refused("other_machine", f"the lease is for the machine {claims['machine_hash']}")


def hash_of_machine(machine_id):
    """Returns the form in leases of a machine id, such as the content of /etc/machine-id."""
    text = f"service-local license binding v1\n{machine_id.strip().lower()}"
    return to_base64url(hashlib.sha256(text.encode()).digest())


def lease_status(claims, now):
    """Returns the state of a verified lease (valid, grace or expired) and why it is not valid.

    A clock that is far behind is only a warning, and times before the issue of the lease count as
    the time of its issue. A program that runs for long should pass the latest time it has seen.
    """
    issued, expires, ends = (
        parse_time(claims[name]) for name in ("issued_at", "expires_at", "grace_ends_at")
    )
    latest = max(now, issued)
    if latest >= ends:
        return "expired", "expired"
    if now < issued - CLOCK_TOLERANCE_SECONDS:
        return "grace", "not_yet_valid"
    if latest >= expires:
        return "grace", "in_grace"
    return "valid", None


# The command.


def judge(keyset, lease, now, pin=None, held=None, use=None):
    """Returns state and reason for the contents of two files; `held` is an earlier keyset file.

    `use` has the arguments of `check_use`. Without a lease, only the keyset is judged, and the state
    of an accepted one is "trusted".
    """
    try:
        # The held document was accepted before, so its expiry does not matter.
        former = None if held is None else verify_trust(held, now=0)
        trust = verify_trust(keyset, now, pin, former)
        if lease is None:
            return "trusted", None
        claims = verify_lease(lease, trust["keys"])
        check_use(claims, **(use or {}))
        return lease_status(claims, now)
    except Refused as refusal:
        return "refused", refusal.reason


def check_vectors(path):
    """Judges each test vector; returns the number of unexpected outcomes."""
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)["vectors"]
    wrong = 0
    for vector in vectors:
        keyset, lease, held = (
            None if vector[name] is None else vector[name].encode("utf-8")
            for name in ("keyset", "lease", "held")
        )
        now = parse_time(vector["now"])
        found = judge(keyset, lease, now, vector["pin"], held, vector["use"])
        if found != (vector["state"], vector["reason"]):
            wrong += 1
            print(f"{vector['name']}: {found}, expected {vector['state']} {vector['reason']}")
    print(f"{len(vectors) - wrong} of {len(vectors)} vectors agree")
    return wrong


def fingerprint(text):
    if is_thumbprint(text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not a fingerprint, which has 43 characters")


def time_of(text):
    seconds = parse_time(text)
    if seconds is not None:
        return seconds
    raise argparse.ArgumentTypeError(f"{text} is not a time such as 2026-01-02T03:04:05Z")


def content(path):
    with open(path, "rb") as file:
        return file.read(MAX_BYTES + 1)


def main():
    parser = argparse.ArgumentParser(description="Verifies an offline license lease.")
    parser.add_argument("files", nargs="*", metavar="KEYSET LEASE")
    parser.add_argument("--pin", type=fingerprint, metavar="FINGERPRINT", help="fingerprint of the root to trust")
    parser.add_argument("--held", metavar="FILE", help="keyset document accepted last time")
    parser.add_argument(
        "--now", type=time_of, metavar="TIME", help="time to judge at, such as 2026-01-02T03:04:05Z"
    )
    parser.add_argument("--product", help="refuse leases of other products")
    parser.add_argument("--device", metavar="ID", help="thumbprint of the device key on this machine")
    parser.add_argument("--machine-id", metavar="ID", help="such as the content of /etc/machine-id")
    parser.add_argument("--vectors", metavar="FILE", help="check this program with test vectors")
    options = parser.parse_args()
    if options.vectors is None and len(options.files) != 2:
        parser.error("a keyset and a lease are needed")
    try:
        if options.vectors is not None:
            return 1 if check_vectors(options.vectors) else 0
        keyset, lease = map(content, options.files)
        held = None if options.held is None else content(options.held)
    except OSError as error:
        parser.exit(2, f"{error.filename}: {error.strerror}\n")
    now = time.time() if options.now is None else options.now
    use = {
        "product": options.product,
        "device_thumbprints": [options.device] if options.device else [],
        "machine_hash": options.machine_id and hash_of_machine(options.machine_id),
    }
    state, reason = judge(keyset, lease, now, options.pin, held, use)
    print(state if reason is None else f"{state} {reason}")
    return {"refused": 3, "expired": 4}.get(state, 0)


if __name__ == "__main__":
    sys.exit(main())
