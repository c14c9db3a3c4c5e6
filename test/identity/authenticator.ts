import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';

/** A simulated authenticator that also creates invalid responses. */
export interface Authenticator {
  readonly register: (challenge: string, wrong?: Wrong) => RegistrationResponseJSON;
  readonly sign: (challenge: string, wrong?: Wrong) => AuthenticationResponseJSON;
}

/** Faults of a response. */
export interface Wrong {
  readonly origin?: string;
  readonly site?: string;
  readonly isUserVerified?: boolean;
  readonly counter?: number;
  readonly type?: string;
  /** Format and CBOR of an attestation statement that was not requested. */
  readonly attestation?: { readonly format: string; readonly statement: Buffer };
}

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

/** @param own origin of the pages on which it is used. */
export function newAuthenticator(own: string): Authenticator {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' });
  const id = randomBytes(16);
  let used = 0;

  const authenticatorData = (
    { site = new URL(own).hostname, isUserVerified = true, counter = ++used }: Wrong,
    credential?: Buffer,
  ): Buffer => {
    const flags =
      USER_PRESENT | (isUserVerified ? USER_VERIFIED : 0) | (credential ? HAS_CREDENTIAL : 0);
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([sha256(site), Buffer.of(flags), count, credential ?? Buffer.alloc(0)]);
  };
  const clientData = (type: string, challenge: string, { origin = own }: Wrong): Buffer =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  const credential = (): Pick<RegistrationResponseJSON, 'id' | 'rawId' | 'type'> => ({
    id: id.toString('base64url'),
    rawId: id.toString('base64url'),
    type: 'public-key',
  });

  return {
    register(challenge, wrong = {}) {
      // COSE (RFC 9052): EC2, ES256, P-256 and the two coordinates.
      const key = Buffer.concat([
        Buffer.from('a50102032620012158', 'hex'),
        Buffer.of(32),
        Buffer.from(x!, 'base64url'),
        Buffer.from('2258', 'hex'),
        Buffer.of(32),
        Buffer.from(y!, 'base64url'),
      ]);
      const length = Buffer.of(0, id.length);
      const data = authenticatorData(wrong, Buffer.concat([Buffer.alloc(16), length, id, key]));
      const { format, statement } = wrong.attestation ?? {
        format: 'none',
        statement: Buffer.of(0xa0),
      };
      const attestation = Buffer.concat([
        // CBOR: {fmt: "none", attStmt: {}, authData: …}
        Buffer.from('a363666d74', 'hex'),
        Buffer.of(0x60 + format.length),
        Buffer.from(`${format}\x67attStmt`),
        statement,
        Buffer.from('68617574684461746158', 'hex'),
        Buffer.of(data.length),
        data,
      ]);
      return {
        ...credential(),
        response: {
          clientDataJSON: clientData('webauthn.create', challenge, wrong).toString('base64url'),
          attestationObject: attestation.toString('base64url'),
        },
        clientExtensionResults: {},
      };
    },
    sign(challenge, wrong = {}) {
      const data = authenticatorData(wrong);
      const client = clientData(wrong.type ?? 'webauthn.get', challenge, wrong);
      return {
        ...credential(),
        response: {
          clientDataJSON: client.toString('base64url'),
          authenticatorData: data.toString('base64url'),
          signature: sign('sha256', Buffer.concat([data, sha256(client)]), privateKey).toString(
            'base64url',
          ),
        },
        clientExtensionResults: {},
      };
    },
  };
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}
