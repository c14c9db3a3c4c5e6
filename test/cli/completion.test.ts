import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verbs.ts';
import { serviceLocal } from './service-local.ts';
import { isAtLength } from '../length.ts';

const execute = promisify(execFile);

let directory: string;
let script: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-completion-'));
  await mkdir(join(directory, 'a directory'));
  await writeFile(join(directory, 'a file.yaml'), '');
  script = (await serviceLocal(['completion', 'bash'])).stdout;
});

afterAll(() => rm(directory, { recursive: true, force: true }));

/** Completions that bash offers for the last word. */
async function offered(...words: string[]): Promise<string[]> {
  const ask = [
    script,
    'COMP_WORDS=(service-local "$@")',
    'COMP_CWORD=$#',
    '_service_local',
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ].join('\n');
  const { stdout } = await execute('bash', ['--norc', '-c', ask, 'bash', ...words], {
    cwd: directory,
  });
  return stdout.split('\n').filter((line) => line !== '');
}

describe('in bash', () => {
  it('offers the first words of all verbs', async () => {
    expect(await offered('')).toEqual([...new Set(VERBS.map(({ path }) => path[0]))]);
  });

  it('offers the next words of a verb, even after global options', async () => {
    expect(await offered('conf')).toEqual(['config']);
    expect(await offered('config', '')).toEqual(['explain', 'list']);
    expect(await offered('--json', 'config', 'e')).toEqual(['explain']);
  });

  it('offers the options of the verb and of its settings', async () => {
    expect(await offered('config', 'list', '--w')).toEqual(['--workers']);
    expect(await offered('config', 'list', '--')).toEqual(
      expect.arrayContaining(['--runs-dir', '--json', '--help']),
    );
    expect(await offered('completion', '--w')).toEqual([]);
    expect(await offered('--v')).toEqual(['--version']);
  });

  it('offers the choices of an argument', async () => {
    expect(await offered('completion', '')).toEqual(['bash', 'zsh']);
    expect(await offered('config', 'explain', 'work')).toEqual(['workers']);
  });

  it.runIf(isAtLength)('offers files or directories, even with spaces in their names', async () => {
    expect(await offered('config', 'list', '--runs-dir', 'a')).toEqual(['a directory']);
    expect(await offered('config', 'list', '--runs-dir', '=', 'a')).toEqual(['a directory']);
    expect(await offered('config', 'list', '--runs-dir', '=')).toEqual(['a directory']);
    expect(await offered('config', 'list', '--workers', '')).toEqual([]);
    expect((await offered('backtest', 'a')).toSorted()).toEqual(['a directory', 'a file.yaml']);
  });

  it('offers nothing after an unknown verb', async () => {
    expect(await offered('conifg', 'li')).toEqual([]);
  });
});

describe('in zsh', () => {
  it.runIf(isAtLength)('describes the same verbs, whether sourced or in fpath', async () => {
    const { code, stdout } = await serviceLocal(['completion', 'zsh']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^#compdef service-local\n/);
    for (const { path } of VERBS) expect(stdout).toContain(`' ${path.join(' ')}')`);
  });
});
