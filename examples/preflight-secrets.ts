/**
 * A step of a pipeline, before anything is deployed: are the secrets of these manifests seeded, and
 * good? Tells names and what is wrong with them, and never a value.
 *
 *   service-local cloud seed --customer acme --env prod --out acme-prod.json
 *   node preflight-secrets.ts acme-prod.json bolt-prod.json
 *
 * Exits with 0 when all are, else with 1.
 */
import { spawnSync } from 'node:child_process';

/** As it is found in PATH. */
const PROGRAM = 'service-local';

interface Preflight {
  readonly secrets: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string | null;
  }[];
  /** Instead, where it could not be checked. */
  readonly error?: { readonly code: string; readonly message: string };
}

const manifests = process.argv.slice(2);
if (manifests.length === 0) throw new Error('name the manifests that `cloud seed --out` wrote');

for (const manifest of manifests) {
  const words = ['cloud', 'preflight', '--manifest', manifest, '--json'];
  const { status, stdout, error } = spawnSync(PROGRAM, words, { encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) process.exitCode = 1;
  const { secrets = [], error: failure } = JSON.parse(stdout) as Partial<Preflight>;
  if (failure) console.log(`${manifest}: ${failure.code}: ${failure.message}`);
  for (const { name, status: is, message } of secrets) console.log(is, name, message ?? '');
}
