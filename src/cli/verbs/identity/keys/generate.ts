import { resolve } from 'node:path';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'generate a key that signs leases',
  description:
    'Writes an Ed25519 key in PKCS#8 PEM to a file that only you can read. The key is never shown and stored nowhere else. Keep it secret: it can issue leases.',
  options: {
    out: { value: 'file', description: 'new file for the key', required: true, complete: 'file' },
  },
  examples: ['identity keys generate --out license-key.pem'],
  async run({ cwd }, _args, { out: file }) {
    const { generateSigningKey, readSigner } = await import('../../../../identity/signing-key.ts');
    const path = resolve(cwd, file);
    const public_key_id = await generateSigningKey(path);
    const { x: public_key } = readSigner(path);
    return {
      data: { path, public_key_id, public_key },
      show(out) {
        out.line(`${path}: key id ${public_key_id}`);
        out.line(`Public key: ${public_key}`);
        out.line(
          `With a trust root, sign the keyset first: service-local identity root sign-keyset --chain license-root.json --key root-key-1.pem --add=${public_key} --upload`,
        );
        out.line(
          `Without a trust root, if a server already signs: service-local identity keys announce --key=${public_key}`,
        );
        out.line(`Start the server with SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH=${path}`);
      },
    };
  },
});
