/**
 * A step of a pipeline that runs before a deployment. It checks that the secrets of the given
 * manifests exist and hold a usable lease. It prints names and faults, but never a value.
 *
 *   service-local cloud seed --customer acme --env prod --out acme-prod.json
 *   node preflight-secrets.ts acme-prod.json bolt-prod.json
 *
 * Exits with 0 if all secrets are usable, else with 1.
 */
import { spawnSync } from 'node:child_process';

/** Found on the PATH. */
const PROGRAM = 'service-local';

interface Preflight {
  readonly secrets: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string | null;
  }[];
  /** Set instead of `secrets` if the check itself failed. */
  readonly error?: { readonly code: string; readonly message: string };
}

const manifests = process.argv.slice(2);
if (manifests.length === 0)
  throw new Error('missing arguments: name manifests written by `service-local cloud seed --out`');

for (const manifest of manifests) {
  const words = ['cloud', 'preflight', '--manifest', manifest, '--json'];
  const { status, stdout, error } = spawnSync(PROGRAM, words, { encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) process.exitCode = 1;
  const { secrets = [], error: failure } = JSON.parse(stdout) as Partial<Preflight>;
  if (failure) console.log(`${manifest}: ${failure.code}: ${failure.message}`);
  for (const { name, status: is, message } of secrets) console.log(is, name, message ?? '');
}
