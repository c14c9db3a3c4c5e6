import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ServiceError } from '../../../../base/errors.ts';
import {
  existsError,
  makeRootKeys,
  parseKeyCount,
  parseLifetime,
  formatDocument,
} from '../../../root.ts';
import { defineVerb } from '../../../verb.ts';

const CHAIN = 'license-root.json';

export const verb = defineVerb({
  summary: 'create the root keys that sign the keyset, and the first root',
  description:
    'Works without a server and a network: run it on a machine that is kept offline. Writes one PEM file for each key, which only you can read and which is never shown, and license-root.json, which is public. A person with --threshold of the keys can make machines accept any lease. If fewer keys than the threshold remain, every machine must be enrolled again.',
  options: {
    out: {
      value: 'dir',
      description: 'directory for the files',
      required: true,
      complete: 'directory',
    },
    keys: { value: 'count', description: 'number of root keys', parse: parseKeyCount, default: 1 },
    threshold: {
      value: 'count',
      description: 'number of keys that must sign',
      parse: parseKeyCount,
      default: 1,
    },
    expiresIn: {
      value: 'time',
      description: 'how long the root is valid; 1825d by default',
      parse: parseLifetime,
    },
  },
  settings: ['license_issuer'],
  examples: [
    'identity root init --out /media/offline',
    'identity root init --out /media/offline --keys 3 --threshold 2',
  ],
  async run(
    { cwd, settings },
    _args,
    { out: dir, keys: count, threshold, expiresIn = 1825 * 86_400 },
  ) {
    const { fingerprintOf, lifetime, publicKeyOf, rootClaims, signRoot } =
      await import('../../../../identity/root-documents.ts');
    const { writeOutFile } = await import('../../../out-file.ts');
    if (threshold > count) {
      throw new ServiceError('usage', `--threshold ${threshold} is more than --keys ${count}`);
    }
    const directory = resolve(cwd, dir);
    const chain = join(directory, CHAIN);
    if (existsSync(chain)) throw existsError(chain);
    await makeDirectory(directory);
    const names = Array.from({ length: count }, (_, index) => `root-key-${index + 1}.pem`);
    const made = await makeRootKeys(directory, names);
    const signers = made.map(({ signer }) => signer);
    const claims = {
      version: 1,
      issuer: settings.license_issuer,
      ...lifetime(Date.now(), expiresIn),
      threshold,
      keys: signers.map(publicKeyOf),
    };
    const document = { roots: [signRoot(claims, signers)] };
    await writeOutFile({ path: chain }, formatDocument(document));
    const fingerprint = fingerprintOf(document);
    const { issuer, expires_at } = rootClaims(document);
    const files = made.map(({ path, signer }) => ({ path, public_key_id: signer.publicKeyId }));
    return {
      data: { chain, fingerprint, issuer, version: 1, threshold, expires_at, keys: files },
      show(out) {
        out.line(`Root of ${issuer}: ${fingerprint}, until ${expires_at}.`);
        out.line(`${threshold} of ${count} keys must sign:`);
        for (const { path, public_key_id } of files) out.line(`  ${path}: ${public_key_id}`);
        out.line('Store each key in a different place, with a backup of each.');
        out.line(
          `Then sign the keyset: service-local identity root sign-keyset --chain ${chain} --key ${files[0]!.path}`,
        );
      },
    };
  },
});

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new ServiceError('output_not_writable', `cannot create ${path}`, { cause: error });
  }
}
