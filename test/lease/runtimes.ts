import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Vectors, vectorsText } from './make-vectors.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/verify');

/** A verifier in another language. */
export interface Verifier {
  /** Name, and why its tests are skipped where they are. */
  readonly title: string;
  readonly isMissing: boolean;
  /** Runs it with these arguments. */
  readonly run: (...args: readonly string[]) => Answer;
}

export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Compiled code stays for the next run; the standard library alone takes up to a minute. */
const GO_CACHE = join(process.env['SERVICE_LOCAL_TEST_DISK'] ?? tmpdir(), 'service-local-go-cache');
const GO = { GOCACHE: GO_CACHE, GO111MODULE: 'off', GOPROXY: 'off', GOTOOLCHAIN: 'local' };

function call(command: string, ...args: readonly string[]): Answer {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, ...GO, PYTHONDONTWRITEBYTECODE: '1' },
  });
  return { code: status, stdout, stderr: error?.message ?? stderr };
}

function isThere(command: string, ...args: readonly string[]): boolean {
  return call(command, ...args).code === 0;
}

function found(name: string, needs: string, isHere: boolean): Omit<Verifier, 'run'> {
  return { title: isHere ? name : `${name} (skipped: needs ${needs})`, isMissing: !isHere };
}

const python: Verifier = {
  ...found(
    'verify.py',
    'python3 with the package cryptography',
    isThere('python3', '-c', 'import cryptography'),
  ),
  run: (...args) => call('python3', join(EXAMPLES, 'verify.py'), ...args),
};

let binary: string | undefined;

/** Compiles the program once. */
function goBinary(): string {
  if (binary !== undefined) return binary;
  const path = join(mkdtempSync(join(tmpdir(), 'service-local-go-')), 'verify');
  const { code, stderr } = call('go', 'build', '-o', path, join(EXAMPLES, 'verify.go'));
  if (code !== 0) throw new Error(stderr);
  binary = path;
  return path;
}

const go: Verifier = {
  ...found('verify.go', 'go', isThere('go', 'version')),
  run: (...args) => call(goBinary(), ...args),
};

export const VERIFIERS = [python, go] as const;

export function judgeAll(verifier: Verifier, vectors: Vectors['vectors']): string {
  const path = join(mkdtempSync(join(tmpdir(), 'service-local-vectors-')), 'vectors.json');
  writeFileSync(path, vectorsText({ about: '', vectors }));
  const { stdout, stderr } = verifier.run('--vectors', path);
  return stdout + stderr;
}
