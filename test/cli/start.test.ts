import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verbs.ts';
import { BIN, runNode, serviceLocal } from './service-local.ts';
import { isAtLength } from '../length.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Writes the URL of each module that Node resolves, except built-in modules. */
const RECORDER = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  let loaded = '';
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      if (!found.url.startsWith('node:')) loaded += 'loaded ' + found.url + '\\n';
      return found;
    },
  });
  // Waits while the pipe is full, unlike fs.writeSync().
  process.on('exit', () => process.stderr.write(loaded));
`)}`;

async function loadedBy(...args: string[]): Promise<string[]> {
  const { code, stderr } = await runNode(['--import', RECORDER, BIN, ...args]);
  expect(code).toBe(0);
  return [...stderr.matchAll(/^loaded file:\/\/(.*)$/gm)].map(([, path]) => path!);
}

describe('--version', () => {
  it('prints the version of package.json', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(await serviceLocal(['--version'])).toEqual({
      code: 0,
      stdout: `${version}\n`,
      stderr: '',
    });
    if (!isAtLength) return;
    expect((await serviceLocal(['-V'])).stdout).toBe(`${version}\n`);
    expect(JSON.parse((await serviceLocal(['--json', '--version'])).stdout)).toEqual({ version });
  });

  it('loads no other module', async () => {
    expect(await loadedBy('--version')).toEqual([
      BIN,
      join(ROOT, 'src/base/package-version.ts'),
      join(ROOT, 'package.json'),
    ]);
  });
});

it.runIf(isAtLength)('only a configured collector makes a program load OpenTelemetry', async () => {
  const importers = async (pattern: RegExp): Promise<string[]> => {
    const found: string[] = [];
    for await (const path of glob('{bin,daemon,src}/**/*.ts', { cwd: ROOT })) {
      if (pattern.test(await readFile(join(ROOT, path), 'utf8'))) found.push(path);
    }
    return found.toSorted();
  };
  expect(await importers(/(?:from|import\() ?'@opentelemetry\//)).toEqual([
    'src/base/open-telemetry-metrics.ts',
    'src/base/open-telemetry.ts',
  ]);
  expect(await importers(/from '.*\/open-telemetry(?:-metrics)?\.ts'/)).toEqual([
    'src/base/open-telemetry.ts',
  ]);
  expect(await importers(/import\('.*\/open-telemetry\.ts'\)/)).toEqual(['src/base/telemetry.ts']);
});

describe('a verb', () => {
  it('loads no other verb, and neither yaml nor chalk unless needed', async () => {
    const loaded = await loadedBy('config', 'list');
    expect(loaded.filter((path) => path.includes('/src/cli/verbs/'))).toEqual([
      join(ROOT, 'src/cli/verbs/config/list.ts'),
    ]);
    expect(loaded.filter((path) => /node_modules\/(?!commander\/)/.test(path))).toEqual([]);
  });

  it.runIf(isAtLength)('loads no package for its help or for completion', async () => {
    const loaded = await loadedBy('completion', 'bash');
    const verbs = loaded.filter((path) => path.includes('/src/cli/verbs/'));
    expect(new Set(verbs).size).toBe(VERBS.length);
    expect(loaded.filter((path) => /node_modules\/(?!commander\/)/.test(path))).toEqual([]);
  });

  it.runIf(isAtLength)('loads no package for the list of all verbs', async () => {
    const loaded = await loadedBy('--help');
    expect(loaded.filter((path) => /node_modules\/(?!commander\/)/.test(path))).toEqual([]);
  });
});
