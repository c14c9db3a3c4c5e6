/**
 * Replaces slow functions in the processes of most tests; see `vitest.config.ts`. Processes that tests
 * start use the original functions.
 * - Node verifies signatures, about 50 times faster than tweetnacl. The tests in `lease` check that both
 *   give the same results.
 * - Passwords are hashed with a scrypt cost of 16, whatever cost the caller requests.
 */
import crypto, { type ScryptOptions } from 'node:crypto';
import { createRequire, registerHooks, syncBuiltinESMExports } from 'node:module';
import { pathToFileURL } from 'node:url';

const tweetnacl = pathToFileURL(createRequire(import.meta.url).resolve('tweetnacl')).href;
const native = new URL('native-ed25519.ts', import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    return resolved.url === tweetnacl ? { url: native, shortCircuit: true } : resolved;
  },
});

const { scrypt } = crypto;

function cheapScrypt(
  password: string,
  salt: Buffer,
  length: number,
  options: ScryptOptions,
  done: (error: Error | null, key: Buffer) => void,
): void {
  scrypt(password, salt, length, { ...options, N: 2 ** 4 }, done);
}

Object.assign(crypto, { scrypt: cheapScrypt });
syncBuiltinESMExports();
