// Verifies an offline license lease, with the standard library of Go 1.19 or newer.
//
//	go build verify.go
//	./verify [-pin FINGERPRINT] [-held FILE] [-now TIME] KEYSET LEASE
//	./verify -vectors vectors.json
//
// KEYSET is the document at /.well-known/license-keys.json of the issuer: a JWK set, or a chain of
// roots and a signed keyset. README.md explains the options, the output and the exit codes.
//
// Sources: DSSE 1.0.2 (envelopes and what is signed), RFC 8032 (Ed25519), RFC 8037 (its keys as JWK),
// RFC 7638 (ids of keys), The Update Framework (roots and keysets).
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	leaseType  = "application/vnd.service-local.license-lease.v1+json"
	rootType   = "application/vnd.service-local.license-root.v1+json"
	keysetType = "application/vnd.service-local.license-keyset.v1+json"

	maxBytes              = 65_536
	maxDepth              = 16
	maxEntitlements       = 64
	maxLifetimeSeconds    = 5 * 366 * 86_400
	clockToleranceSeconds = 300
)

// refusal says why a lease or keyset must not be used. Its reason is a stable code.
type refusal struct{ reason, detail string }

func (r *refusal) Error() string { return r.reason + ": " + r.detail }

func refuse(reason, format string, values ...any) error {
	return &refusal{reason, fmt.Sprintf(format, values...)}
}

type object = map[string]any

// Strict JSON. RFC 8259 does not define the meaning of a repeated member or half a surrogate pair;
// RFC 7493 excludes both, so they are refused. Numbers become float64, as in JavaScript.

func strictJSON(data []byte, what string) (any, error) {
	if len(data) > maxBytes {
		return nil, refuse("too_large", "%s has more than %d bytes", what, maxBytes)
	}
	if !utf8.Valid(data) {
		return nil, refuse("not_utf8", "%s is not UTF-8", what)
	}
	if !json.Valid(data) || hasHalfSurrogatePair(data) {
		return nil, refuse("not_json", "%s is empty, cut short or otherwise not JSON", what)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return readValue(decoder, what, 1)
}

// readValue reads the next value token by token, because Decode would keep the last of repeated
// members.
func readValue(decoder *json.Decoder, what string, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, refuse("not_json", "%s: %v", what, err)
	}
	switch token := token.(type) {
	case json.Number:
		number, _ := strconv.ParseFloat(token.String(), 64) // infinite if out of range
		return number, nil
	case json.Delim:
		if depth > maxDepth {
			return nil, refuse("nested_too_deep", "%s has more than %d levels", what, maxDepth)
		}
		if token == '{' {
			return readObject(decoder, what, depth)
		}
		return readList(decoder, what, depth)
	}
	return token, nil // a string, a boolean or null
}

func readObject(decoder *json.Decoder, what string, depth int) (any, error) {
	members := object{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, refuse("not_json", "%s: %v", what, err)
		}
		name := token.(string)
		if name == "__proto__" {
			return nil, refuse("forbidden_member", "%s has a member \"__proto__\"", what)
		}
		if _, exists := members[name]; exists {
			return nil, refuse("duplicate_member", "%s has the member %q twice", what, name)
		}
		if members[name], err = readValue(decoder, what, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := decoder.Token() // the closing bracket
	return members, err
}

func readList(decoder *json.Decoder, what string, depth int) (any, error) {
	items := []any{}
	for decoder.More() {
		item, err := readValue(decoder, what, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := decoder.Token()
	return items, err
}

var escapes = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+|\\.`)

// hasHalfSurrogatePair reports whether valid JSON has an escape of half a surrogate pair, which
// encoding/json would replace with U+FFFD.
func hasHalfSurrogatePair(data []byte) bool {
	for _, match := range escapes.FindAllString(string(data), -1) {
		var units []uint16
		for _, digits := range strings.Split(match, `\u`)[1:] {
			unit, _ := strconv.ParseUint(digits, 16, 16)
			units = append(units, uint16(unit))
		}
		if len(units) > 0 && !reflect.DeepEqual(utf16.Encode(utf16.Decode(units)), units) {
			return true
		}
	}
	return false
}

var (
	idForm          = regexp.MustCompile(`^[!-~]{1,128}$`)
	digestForm      = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	entitlementForm = regexp.MustCompile(`^[a-z][a-z0-9_.:-]{0,63}$`)
)

func matches(form *regexp.Regexp, value any) bool {
	text, ok := value.(string)
	return ok && form.MatchString(text)
}

func isID(value any) bool     { return matches(idForm, value) }
func isDigest(value any) bool { return matches(digestForm, value) }

// isWholeNumber accepts numbers up to 2^53 - 1, beyond which JSON numbers are not exact.
func isWholeNumber(value any, least float64) bool {
	number, ok := value.(float64)
	return ok && number == math.Trunc(number) && least <= number && number <= 1<<53-1
}

const timeForm = "2006-01-02T15:04:05Z"

// parseTime reads seconds since the Unix epoch from a time such as 2026-01-02T03:04:05Z, and no other
// form.
func parseTime(value any) (int64, bool) {
	text, ok := value.(string)
	if !ok {
		return 0, false
	}
	at, err := time.Parse(timeForm, text)
	if err != nil || at.Year() == 0 || at.Format(timeForm) != text { // Parse accepts fractions
		return 0, false
	}
	return at.Unix(), true
}

// timeOf is for values that parseTime has accepted.
func timeOf(value any) int64 {
	seconds, _ := parseTime(value)
	return seconds
}

// Base64 (RFC 4648) in its canonical form. Decoders accept other forms, so the result is encoded again
// and compared.

func fromBase64(encoding *base64.Encoding, text, what string) ([]byte, error) {
	data, err := encoding.DecodeString(text)
	if err != nil || encoding.EncodeToString(data) != text {
		return nil, refuse("bad_base64", "%s is not in canonical base64", what)
	}
	return data, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Ed25519. Libraries differ in the malformed keys and signatures that they accept. This verifier
// refuses those that RFC 8032, sections 5.1.3 and 5.1.7, excludes. It also refuses keys of small order,
// for which anyone can sign any text (Chalkias et al., "Taming the Many EdDSAs", 2020).

func number(text string) *big.Int {
	value, _ := new(big.Int).SetString(text, 0)
	return value
}

var (
	one = big.NewInt(1)
	// Elements of the field.
	fieldP = new(big.Int).Sub(new(big.Int).Lsh(one, 255), big.NewInt(19))
	// Order of the base point.
	orderL = new(big.Int).Add(new(big.Int).Lsh(one, 252), number("27742317777372353535851937790883648493"))
	// The curve is -x^2 + y^2 = 1 + D x^2 y^2, with D = -121665 / 121666.
	curveD = mulMod(big.NewInt(-121665), new(big.Int).ModInverse(big.NewInt(121666), fieldP))
)

func mulMod(a, b *big.Int) *big.Int {
	product := new(big.Int).Mul(a, b)
	return product.Mod(product, fieldP)
}

func littleEndian(data []byte) *big.Int {
	reversed := make([]byte, len(data))
	for i, value := range data {
		reversed[len(data)-1-i] = value
	}
	return new(big.Int).SetBytes(reversed)
}

func yOf(point []byte) *big.Int { return new(big.Int).SetBit(littleEndian(point), 255, 0) }

// isCanonical reports whether y is reduced, and x = 0 is not marked as negative.
func isCanonical(point []byte) bool {
	y := yOf(point)
	isZeroX := y.Cmp(one) == 0 || new(big.Int).Add(y, one).Cmp(fieldP) == 0
	return y.Cmp(fieldP) < 0 && !(isZeroX && point[31] >= 0x80)
}

func checkKey(key []byte, what string) error {
	if !isCanonical(key) {
		return refuse("key_not_canonical", "%s", what)
	}
	y := yOf(key)
	y2 := mulMod(y, y)
	numerator := new(big.Int).Sub(y2, one) // of x^2
	denominator := new(big.Int).Add(mulMod(curveD, y2), one)
	if big.Jacobi(mulMod(numerator, denominator), fieldP) == -1 { // x^2 is not a square
		return refuse("key_not_on_curve", "%s", what)
	}
	// The order is 1 or 2 where x = 0, 4 where y = 0, and 8 where x^2 = -y^2.
	sum := new(big.Int).Add(numerator, mulMod(y2, denominator))
	if mulMod(mulMod(y2, numerator), sum).Sign() == 0 {
		return refuse("key_small_order", "%s", what)
	}
	return nil
}

func checkSignature(key, signature, message []byte, what string) error {
	if len(signature) != ed25519.SignatureSize {
		return refuse("signature_length", "%s", what)
	}
	if littleEndian(signature[32:]).Cmp(orderL) >= 0 { // otherwise each signature would have a second form
		return refuse("signature_scalar", "%s", what)
	}
	if !isCanonical(signature[:32]) {
		return refuse("signature_point", "%s", what)
	}
	if !ed25519.Verify(key, message, signature) {
		return refuse("bad_signature", "%s", what)
	}
	return nil
}

// Envelopes (https://github.com/secure-systems-lab/dsse/blob/v1.0.2/envelope.md). They have only the
// three members, and each signature has a key id.

type signature struct {
	keyID string
	bytes []byte
}

type envelope struct {
	payloadType string
	payload     []byte
	signatures  []signature
}

// preAuthEncoding returns the signed bytes: the payload with its type, so that a signature counts for
// one type only.
func (e envelope) preAuthEncoding() []byte {
	header := fmt.Sprintf("DSSEv1 %d %s %d ", len(e.payloadType), e.payloadType, len(e.payload))
	return append([]byte(header), e.payload...)
}

func membersOf(value any, what string, names ...string) (object, error) {
	members, ok := value.(object)
	for _, name := range names {
		_, exists := members[name]
		ok = ok && exists
	}
	if !ok || len(members) != len(names) {
		return nil, refuse("not_an_envelope", "%s is not an object with only %v", what, names)
	}
	return members, nil
}

func bytesOf(value any, what string) ([]byte, error) {
	text, ok := value.(string)
	if !ok {
		return nil, refuse("not_an_envelope", "%s is not a string", what)
	}
	return fromBase64(base64.StdEncoding, text, what)
}

// readEnvelope does not verify the signatures.
func readEnvelope(value any, payloadType, what string, maxSignatures int) (envelope, error) {
	none := envelope{}
	members, err := membersOf(value, what, "payloadType", "payload", "signatures")
	if err != nil {
		return none, err
	}
	stated, ok := members["payloadType"].(string)
	if !ok {
		return none, refuse("not_an_envelope", "payloadType is not a string")
	}
	if stated != payloadType {
		return none, refuse("wrong_payload_type", "%s is not of the type %s", what, payloadType)
	}
	list, ok := members["signatures"].([]any)
	if !ok || len(list) < 1 || len(list) > maxSignatures {
		return none, refuse("not_an_envelope", "%s has not 1 to %d signatures", what, maxSignatures)
	}
	result, seen := envelope{payloadType: payloadType}, map[string]bool{}
	for _, item := range list {
		read, err := readSignature(item)
		if err != nil {
			return none, err
		}
		seen[read.keyID] = true
		result.signatures = append(result.signatures, read)
	}
	if len(seen) < len(list) {
		return none, refuse("not_an_envelope", "two signatures of %s name the same key", what)
	}
	result.payload, err = bytesOf(members["payload"], "payload")
	return result, err
}

func readSignature(value any) (signature, error) {
	members, err := membersOf(value, "a signature", "keyid", "sig")
	if err != nil {
		return signature{}, err
	}
	keyID, ok := members["keyid"].(string)
	if !ok {
		return signature{}, refuse("not_an_envelope", "keyid is not a string")
	}
	data, err := bytesOf(members["sig"], "sig")
	return signature{keyID, data}, err
}

// signers returns the ids of the keys that signed. Unknown keys are skipped; the signature of a known
// key must be valid.
func (e envelope) signers(keys keySet, what string) (map[string]bool, error) {
	message, signers := e.preAuthEncoding(), map[string]bool{}
	for _, signature := range e.signatures {
		key, isKnown := keys[signature.keyID]
		if !isKnown {
			continue
		}
		if err := checkSignature(key, signature.bytes, message, what+": "+signature.keyID); err != nil {
			return nil, err
		}
		signers[signature.keyID] = true
	}
	return signers, nil
}

// Keys (RFC 7517, RFC 8037).

// keySet maps the id of each trusted key to its 32 bytes.
type keySet map[string]ed25519.PublicKey

func (keys keySet) hasAll(others keySet) bool {
	for id := range others {
		if _, exists := keys[id]; !exists {
			return false
		}
	}
	return true
}

func importKeys(value any) (keySet, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, refuse("invalid_keyset", "the keyset has no list of keys")
	}
	trusted, seen := keySet{}, map[string]bool{}
	for _, item := range list {
		jwk, ok := item.(object)
		if !ok {
			return nil, refuse("invalid_keyset", "a key is not an object")
		}
		if _, exists := jwk["d"]; exists {
			return nil, refuse("private_key", "the keyset contains the private part of a key")
		}
		if jwk["kty"] != "OKP" || jwk["crv"] != "Ed25519" {
			continue
		}
		id, key, err := importKey(jwk)
		if err != nil {
			return nil, err
		}
		if seen[id] {
			return nil, refuse("invalid_keyset", "the key %s is listed twice", id)
		}
		seen[id] = true
		status, exists := jwk["status"]
		if !exists || status == "active" || status == "retiring" {
			trusted[id] = key
		}
	}
	if len(trusted) == 0 {
		return nil, refuse("invalid_keyset", "the keyset has no Ed25519 key that may verify")
	}
	return trusted, nil
}

func importKey(jwk object) (string, ed25519.PublicKey, error) {
	x, ok := jwk["x"].(string)
	if !ok {
		return "", nil, refuse("invalid_keyset", "x of a key is not a string")
	}
	key, err := fromBase64(base64.RawURLEncoding, x, "x of a key")
	if err != nil {
		return "", nil, err
	}
	if len(key) != ed25519.PublicKeySize {
		return "", nil, refuse("invalid_keyset", "x of a key has %d bytes instead of 32", len(key))
	}
	if err := checkKey(key, "the key "+x); err != nil {
		return "", nil, err
	}
	id := digestOf([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`)) // RFC 7638
	if jwk["kid"] != id {
		return "", nil, refuse("key_id_mismatch", "kid of a key is not %s", id)
	}
	return id, key, nil
}

// Roots and keysets, by the rules of The Update Framework
// (https://theupdateframework.github.io/specification/latest/, section 5.3).

// document is a verified root or keyset.
type document struct {
	claims object
	keys   keySet
}

type root struct {
	document
	// Fingerprints of the roots that lead to this one, oldest first; the last is its own.
	lineage []string
}

func (r *root) fingerprint() string { return r.lineage[len(r.lineage)-1] }

func contains(list []string, value any) bool {
	for _, item := range list {
		if item == value {
			return true
		}
	}
	return false
}

func readClaims(payload []byte, what string) (object, error) {
	value, err := strictJSON(payload, what)
	if err != nil {
		return nil, err
	}
	claims, ok := value.(object)
	issued, hasIssued := parseTime(claims["issued_at"])
	expires, hasExpires := parseTime(claims["expires_at"])
	if !ok || !isWholeNumber(claims["version"], 1) || !isID(claims["issuer"]) ||
		!hasIssued || !hasExpires || expires <= issued {
		return nil, refuse("invalid_root", "%s lacks a valid version, issuer or time", what)
	}
	return claims, nil
}

func (e envelope) checkThreshold(keys keySet, threshold float64, what string) error {
	signers, err := e.signers(keys, what)
	if err == nil && float64(len(signers)) < threshold {
		return refuse("not_vouched_for", "%s has %d of %v signatures needed", what, len(signers), threshold)
	}
	return err
}

// verifyRoots verifies a chain of roots, oldest first, from the pinned one on, and returns the newest.
func verifyRoots(value any, pin string) (*root, error) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, refuse("invalid_root", "the roots are not a list")
	}
	var envelopes []envelope
	for _, item := range list {
		read, err := readEnvelope(item, rootType, "a root", 16)
		if err != nil {
			return nil, err
		}
		envelopes = append(envelopes, read)
	}
	var newest *root
	for _, item := range envelopes {
		if newest == nil && pin != "" && digestOf(item.payload) != pin {
			continue
		}
		next, err := nextRoot(newest, item)
		if err != nil {
			return nil, err
		}
		newest = next
	}
	if newest == nil {
		return nil, refuse("other_root", "none of the roots is %s", pin)
	}
	return newest, nil
}

// nextRoot requires signatures by a threshold of the root's own keys, and by a threshold of the keys of
// the root before it.
func nextRoot(former *root, signed envelope) (*root, error) {
	const what = "a root"
	claims, err := readClaims(signed.payload, what)
	if err != nil {
		return nil, err
	}
	keys, err := importKeys(claims["keys"])
	if err != nil {
		return nil, err
	}
	threshold, _ := claims["threshold"].(float64)
	if !isWholeNumber(threshold, 1) || int(threshold) > len(keys) {
		return nil, refuse("invalid_root", "the threshold of a root does not fit its keys")
	}
	if err := signed.checkThreshold(keys, threshold, what); err != nil {
		return nil, err
	}
	result := &root{document{claims, keys}, []string{digestOf(signed.payload)}}
	if former == nil {
		return result, nil
	}
	if claims["version"] != former.claims["version"].(float64)+1 {
		return nil, refuse("root_rollback", "the versions of the roots do not rise by one")
	}
	if claims["issuer"] != former.claims["issuer"] {
		return nil, refuse("other_issuer", "two roots of one chain have different issuers")
	}
	result.lineage = append(append([]string{}, former.lineage...), result.lineage...)
	return result, signed.checkThreshold(former.keys, former.claims["threshold"].(float64), what)
}

func verifyKeyset(value any, signers keySet, threshold float64) (document, error) {
	const what = "the keyset"
	none := document{}
	signed, err := readEnvelope(value, keysetType, what, 16)
	if err != nil {
		return none, err
	}
	if err := signed.checkThreshold(signers, threshold, what); err != nil {
		return none, err
	}
	claims, err := readClaims(signed.payload, what)
	if err != nil {
		return none, err
	}
	if root, exists := claims["root"]; exists && !isDigest(root) {
		return none, refuse("invalid_root", "root in the keyset is not a fingerprint")
	}
	keys, err := importKeys(claims["keys"])
	if err != nil {
		return none, err
	}
	retired, ok := claims["retired"].([]any)
	for _, id := range retired {
		text, _ := id.(string)
		_, isInUse := keys[text]
		ok = ok && isID(id) && !isInUse
	}
	if !ok {
		return none, refuse("invalid_root", "retired in the keyset is not a list of ids of other keys")
	}
	return document{claims, keys}, nil
}

// trust holds the keys that may verify leases. A verifier that keeps the last trust that it accepted,
// and passes it as held, refuses older documents and other roots.
type trust struct {
	keys   keySet
	root   *root  // nil for keys without a root
	keyset object // claims of the signed keyset, or nil
}

// verifyTrust judges a keyset document. An empty pin and a nil held mean that there is none.
func verifyTrust(data []byte, now time.Time, pin string, held *trust) (*trust, error) {
	value, err := strictJSON(data, "the keyset")
	if err != nil {
		return nil, err
	}
	members, ok := value.(object)
	if roots, exists := members["roots"]; exists {
		return signedTrust(roots, members["keyset"], now, pin, held)
	}
	if pin != "" || (held != nil && held.root != nil) {
		return nil, refuse("not_vouched_for", "the keyset is not signed by the trusted root")
	}
	if !ok {
		return nil, refuse("invalid_keyset", "the keyset is not an object")
	}
	return bareTrust(members, now, held)
}

func signedTrust(roots, keyset any, now time.Time, pin string, held *trust) (*trust, error) {
	root, err := verifyRoots(roots, pin)
	if err != nil {
		return nil, err
	}
	if held != nil && held.root != nil {
		if err := checkDescent(held.root, root, roots); err != nil {
			return nil, err
		}
	}
	signed, err := verifyKeyset(keyset, root.keys, root.claims["threshold"].(float64))
	if err != nil {
		return nil, err
	}
	if held != nil && held.root == nil && pin == "" {
		// A held key vouches for a first root by signing a keyset that names this root.
		if _, err := verifyKeyset(keyset, held.keys, 1); err != nil {
			return nil, err
		}
		if !contains(root.lineage, signed.claims["root"]) {
			return nil, refuse("not_vouched_for", "the keyset does not name this root")
		}
	}
	if signed.claims["issuer"] != root.claims["issuer"] {
		return nil, refuse("other_issuer", "the keyset and its root have different issuers")
	}
	if err := checkSuccession(signed.claims, held); err != nil {
		return nil, err
	}
	if err := checkNewKeys(signed.keys, held, now, signed.claims, root.claims); err != nil {
		return nil, err
	}
	return &trust{signed.keys, root, signed.claims}, nil
}

// checkDescent requires the new root to be the held one or to descend from it. A pin may name a root
// later than the held one.
func checkDescent(held, offered *root, roots any) error {
	if contains(offered.lineage, held.fingerprint()) {
		return nil
	}
	if _, err := verifyRoots(roots, held.fingerprint()); err == nil {
		return nil
	}
	if contains(held.lineage, offered.fingerprint()) {
		return refuse("root_rollback", "the root is older than the trusted one")
	}
	return refuse("other_root", "the root does not descend from the trusted one")
}

// bareTrust judges keys without a root: held keys vouch for new ones by signing the keyset.
func bareTrust(members object, now time.Time, held *trust) (*trust, error) {
	keys, err := importKeys(members["keys"])
	if err != nil {
		return nil, err
	}
	keyset, isSigned := members["keyset"]
	if held == nil {
		// Nothing vouches for these keys, but from now on the version of their keyset must not fall.
		own, err := verifyKeyset(keyset, keys, 1)
		if err != nil {
			return &trust{keys: keys}, nil
		}
		return &trust{keys: keys, keyset: own.claims}, nil
	}
	if !isSigned {
		if !held.keys.hasAll(keys) {
			return nil, refuse("not_vouched_for", "no trusted key signs a new key")
		}
		return &trust{keys: keys, keyset: held.keyset}, nil
	}
	signed, err := verifyKeyset(keyset, held.keys, 1)
	if err != nil {
		return nil, err
	}
	if err := checkSuccession(signed.claims, held); err != nil {
		return nil, err
	}
	if err := checkNewKeys(signed.keys, held, now, signed.claims); err != nil {
		return nil, err
	}
	return &trust{keys: signed.keys, keyset: signed.claims}, nil
}

// checkSuccession refuses a lower version, and another document with the same version.
func checkSuccession(offered object, held *trust) error {
	if held == nil || held.keyset == nil {
		return nil
	}
	former := held.keyset
	if offered["issuer"] != former["issuer"] {
		return refuse("other_issuer", "the keyset belongs to another issuer than the trusted one")
	}
	version, least := offered["version"].(float64), former["version"].(float64)
	if version < least || (version == least && !reflect.DeepEqual(offered, former)) {
		return refuse("keyset_rollback", "the keyset is older than the trusted one")
	}
	return nil
}

// checkNewKeys refuses an expired document only if it adds a key, so that its expiry ends no lease.
func checkNewKeys(keys keySet, held *trust, now time.Time, documents ...object) error {
	var known keySet
	if held != nil {
		known = held.keys
	}
	for _, claims := range documents {
		if !now.Before(time.Unix(timeOf(claims["expires_at"]), 0)) && !known.hasAll(keys) {
			return refuse("keyset_expired", "the keyset has expired and adds a key")
		}
	}
	return nil
}

// Leases.

func isEntitlements(value any) bool {
	list, ok := value.([]any)
	seen := map[any]bool{}
	for _, name := range list {
		ok = ok && matches(entitlementForm, name) && !seen[name]
		if ok {
			seen[name] = true
		}
	}
	return ok && len(list) <= maxEntitlements
}

func isTime(value any) bool {
	_, ok := parseTime(value)
	return ok
}

type rule struct {
	name       string
	accepts    func(any) bool
	isOptional bool
}

var rules = []rule{
	{"lease_id", isID, false},
	{"deployment_id", isID, false},
	{"customer_id", isID, true},
	{"entitlements", isEntitlements, false},
	{"issued_at", isTime, false},
	{"expires_at", isTime, false},
	{"grace_ends_at", isTime, false},
	{"ttl_seconds", func(value any) bool { return isWholeNumber(value, 1) }, false},
	{"grace_period_seconds", func(value any) bool { return isWholeNumber(value, 0) }, false},
	{"public_key_id", isDigest, false},
	{"issuer", isID, false},
	{"renewal_id", isID, true},
	{"previous_lease_id", isID, true},
	{"device_thumbprint", isDigest, true},
	{"product", isID, true},
	{"binding", func(value any) bool { return value == "none" || value == "device" || value == "machine" }, true},
	{"machine_hash", isDigest, true},
}

// verifyLease returns the claims of a lease that one of the keys signed. It does not check the time.
func verifyLease(data []byte, keys keySet) (object, error) {
	value, err := strictJSON(data, "the lease")
	if err != nil {
		return nil, err
	}
	signed, err := readEnvelope(value, leaseType, "the lease", 4)
	if err != nil {
		return nil, err
	}
	signers, err := signed.signers(keys, "the lease")
	if err != nil {
		return nil, err
	}
	if len(signers) == 0 {
		return nil, refuse("unknown_key", "no key of the keyset signed the lease")
	}
	payload, err := strictJSON(signed.payload, "the payload")
	if err != nil {
		return nil, err
	}
	claims, err := checkClaims(payload)
	if err != nil {
		return nil, err
	}
	if !signers[claims["public_key_id"].(string)] {
		return nil, refuse("key_mismatch", "the lease names another key than the one that signed it")
	}
	return claims, nil
}

// checkClaims checks the claims, and omits members that this version does not know.
func checkClaims(value any) (object, error) {
	payload, ok := value.(object)
	if !ok {
		return nil, refuse("invalid_claims", "the payload is not an object")
	}
	claims := object{}
	for _, rule := range rules {
		claim, exists := payload[rule.name]
		if !exists && rule.isOptional {
			continue
		}
		if !exists || !rule.accepts(claim) {
			reason := "invalid_claims"
			if exists && strings.HasSuffix(rule.name, "_at") {
				reason = "invalid_time"
			}
			return nil, refuse(reason, "%s is missing or has a wrong form", rule.name)
		}
		claims[rule.name] = claim
	}
	ttl, grace := claims["ttl_seconds"].(float64), claims["grace_period_seconds"].(float64)
	issued, expires, ends := timesOf(claims)
	if float64(expires-issued) != ttl || float64(ends-expires) != grace {
		return nil, refuse("inconsistent_claims", "the times of the lease do not add up")
	}
	if ttl+grace > maxLifetimeSeconds {
		return nil, refuse("invalid_claims", "the lease lasts for over %d seconds", maxLifetimeSeconds)
	}
	_, hasDevice := claims["device_thumbprint"]
	_, hasMachine := claims["machine_hash"]
	if (claims["binding"] == "device" && !hasDevice) || (claims["binding"] == "machine" && !hasMachine) {
		return nil, refuse("invalid_claims", "the lease is bound, and does not say to what")
	}
	return claims, nil
}

func timesOf(claims object) (issued, expires, ends int64) {
	return timeOf(claims["issued_at"]), timeOf(claims["expires_at"]), timeOf(claims["grace_ends_at"])
}

// use is the program and machine on which a lease is used.
type use struct {
	// Leases for other products are refused; if empty, leases for every product are accepted.
	Product string `json:"product"`
	// Thumbprints of the device keys whose private part is on this machine.
	DeviceThumbprints []string `json:"device_thumbprints"`
	// hashOfMachine of this machine; empty if its id is not known.
	MachineHash string `json:"machine_hash"`
}

func checkUse(claims object, here use) error {
	if product, exists := claims["product"]; exists && here.Product != "" && product != here.Product {
		return refuse("other_product", "the lease is for %s", product)
	}
	switch device, machine := claims["device_thumbprint"], claims["machine_hash"]; claims["binding"] {
	case "device":
		if len(here.DeviceThumbprints) == 0 {
			return refuse("no_device_key", "the lease is bound to a device, and no device key is here")
		}
		if !contains(here.DeviceThumbprints, device) {
			return refuse("other_device", "the lease is for the device %s", device)
		}
	case "machine":
		if here.MachineHash == "" {
			return refuse("no_machine_id", "the lease is bound to a machine, and the id of this one is unknown")
		}
		if machine != here.MachineHash {
			return refuse("other_machine", "the lease is for the machine %s", machine)
		}
	}
	return nil
}

// hashOfMachine returns the form in leases of a machine id, such as the content of /etc/machine-id.
func hashOfMachine(id string) string {
	return digestOf([]byte("service-local license binding v1\n" + strings.ToLower(strings.TrimSpace(id))))
}

// leaseStatus returns the state of a verified lease (valid, grace or expired) and why it is not valid.
//
// A clock that is far behind is only a warning, and times before the issue of the lease count as the
// time of its issue. A program that runs for long should pass the latest time that it has seen.
func leaseStatus(claims object, now time.Time) (state, reason string) {
	issuedAt, expiresAt, endsAt := timesOf(claims)
	issued := time.Unix(issuedAt, 0)
	latest := now
	if latest.Before(issued) {
		latest = issued
	}
	switch {
	case !latest.Before(time.Unix(endsAt, 0)):
		return "expired", "expired"
	case now.Before(issued.Add(-clockToleranceSeconds * time.Second)):
		return "grace", "not_yet_valid"
	case !latest.Before(time.Unix(expiresAt, 0)):
		return "grace", "in_grace"
	}
	return "valid", ""
}

// The command.

// request has the contents of the files; Held and Lease may be nil.
type request struct {
	keyset, lease, held []byte
	pin                 string
	use                 use
	now                 time.Time
}

// judge returns state and reason. Without a lease it judges only the keyset; the state of an accepted
// one is "trusted".
func judge(given request) (state, reason string, err error) {
	var held *trust
	if given.held != nil {
		// The held document was accepted before, so its expiry does not matter.
		if held, err = verifyTrust(given.held, time.Unix(0, 0), "", nil); err != nil {
			return "", "", err
		}
	}
	trusted, err := verifyTrust(given.keyset, given.now, given.pin, held)
	if err != nil {
		return "", "", err
	}
	if given.lease == nil {
		return "trusted", "", nil
	}
	claims, err := verifyLease(given.lease, trusted.keys)
	if err != nil {
		return "", "", err
	}
	if err := checkUse(claims, given.use); err != nil {
		return "", "", err
	}
	state, reason = leaseStatus(claims, given.now)
	return state, reason, nil
}

// verdict calls judge, and returns a refusal as the state "refused".
func verdict(given request) (state, reason string) {
	state, reason, err := judge(given)
	var refused *refusal
	if errors.As(err, &refused) {
		return "refused", refused.reason
	}
	if err != nil {
		return "refused", err.Error()
	}
	return state, reason
}

type vector struct {
	Name   string    `json:"name"`
	Keyset *string   `json:"keyset"`
	Pin    string    `json:"pin"`
	Held   *string   `json:"held"`
	Lease  *string   `json:"lease"`
	Use    use       `json:"use"`
	Now    time.Time `json:"now"`
	State  string    `json:"state"`
	Reason string    `json:"reason"`
}

// checkVectors judges each test vector, and reports whether all have the expected outcome.
func checkVectors(path string) bool {
	text, err := os.ReadFile(path)
	fail(err)
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	fail(json.Unmarshal(text, &file))
	agreed := 0
	for _, one := range file.Vectors {
		state, reason := verdict(request{
			bytesOrNil(one.Keyset), bytesOrNil(one.Lease), bytesOrNil(one.Held), one.Pin, one.Use, one.Now,
		})
		if state == one.State && reason == one.Reason {
			agreed++
			continue
		}
		fmt.Printf("%s: %s %s, expected %s %s\n", one.Name, state, reason, one.State, one.Reason)
	}
	fmt.Printf("%d of %d vectors agree\n", agreed, len(file.Vectors))
	return agreed == len(file.Vectors)
}

func bytesOrNil(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func content(path string) []byte {
	file, err := os.Open(path)
	fail(err)
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	fail(err)
	return data
}

func main() {
	given := request{now: time.Now()}
	flag.Func("pin", "fingerprint of the root to trust", func(text string) error {
		if !digestForm.MatchString(text) {
			return errors.New("a fingerprint has 43 characters")
		}
		given.pin = text
		return nil
	})
	flag.Func("now", "time to judge at, such as 2026-01-02T03:04:05Z", func(text string) error {
		seconds, ok := parseTime(text)
		if !ok {
			return errors.New("a time is written as 2026-01-02T03:04:05Z")
		}
		given.now = time.Unix(seconds, 0)
		return nil
	})
	held := flag.String("held", "", "file with the keyset document accepted last time")
	product := flag.String("product", "", "refuse leases of other products")
	device := flag.String("device", "", "thumbprint of the device key on this machine")
	machine := flag.String("machine-id", "", "such as the content of /etc/machine-id")
	vectors := flag.String("vectors", "", "file with test vectors to check this program")
	flag.Parse()
	if *vectors != "" {
		if !checkVectors(*vectors) {
			os.Exit(1)
		}
		return
	}
	if flag.NArg() != 2 {
		fail(errors.New("a keyset and a lease are needed"))
	}
	given.keyset, given.lease = content(flag.Arg(0)), content(flag.Arg(1))
	given.use.Product = *product
	if *held != "" {
		given.held = content(*held)
	}
	if *device != "" {
		given.use.DeviceThumbprints = []string{*device}
	}
	if *machine != "" {
		given.use.MachineHash = hashOfMachine(*machine)
	}
	state, reason := verdict(given)
	fmt.Println(strings.TrimSpace(state + " " + reason))
	os.Exit(map[string]int{"refused": 3, "expired": 4}[state])
}
