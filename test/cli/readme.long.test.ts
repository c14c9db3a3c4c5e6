import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { TOTP } from 'otpauth';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startServer, type RunningServer } from '../server/running.ts';
import { blocksOf, linesToRun, withoutComment } from '../docs/documents.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';
import { BASIC_ENV, BIN, type Result } from './service-local.ts';

const ROOT = join(import.meta.dirname, '../..');
const PASSWORD = 'correct horse battery';

let home: string;
let work: string;
let server: RunningServer | undefined;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'service-local-readme-'));
  work = join(home, 'work');
  await mkdir(work);
  // Stands for the command after `npm install --global`.
  await mkdir(join(home, 'bin'));
  const command = join(home, 'bin/service-local');
  await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`);
  await chmod(command, 0o755);
});
afterAll(async () => {
  await server?.stop();
  await rm(home, { recursive: true });
});

/** The lines of the first shell block of README.md that contains `text`. */
function linesOf(text: string): string[] {
  const block = blocksOf('README.md').find(({ lines }) =>
    lines.some((line) => line.includes(text)),
  );
  return block!.lines.map(withoutComment);
}

const environment = (): Record<string, string> => ({
  HOME: home,
  SERVICE_LOCAL_HOME: home,
  ...(server && { SERVICE_LOCAL_SERVER_URL: server.url }),
});

/** Runs a line in a shell. */
function shell(line: string, cwd: string): Promise<Result> {
  const env = { ...BASIC_ENV, ...environment() };
  const path = [join(home, 'bin'), env.PATH].join(delimiter);
  return new Promise((resolve) => {
    execFile('bash', ['-c', line], { cwd, env: { ...env, PATH: path } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** Splits a line without quotes into words. */
const wordsOf = (line: string): string[] => line.split('#')[0]!.trim().split(/ +/).slice(1);

/** Runs lines that need a terminal or do not end; all others run in a shell. */
const SPECIAL: Readonly<Record<string, (line: string) => Promise<Result>>> = {
  'service-local server': async () => {
    server = await startServer({ kind: 'sqlite', location: { file: join(home, 'any') } } as never);
    return { code: 0, stdout: '', stderr: server.log() };
  },
  'service-local identity administrators add': async (line) => {
    const codeOf = (shown: string): string => {
      const [, secret] = /enter this key: (\w+)/.exec(shown)!;
      return `${new TOTP({ secret: secret! }).generate()}\r`;
    };
    const added = await inProcess(wordsOf(line), {
      env: environment(),
      person: createTerminal([
        ['New password of ada', `${PASSWORD}\r`],
        ['Repeat the password', `${PASSWORD}\r`],
        ['Code that the app shows', codeOf],
      ]),
    });
    recovery = /^ {2}([0-9A-Za-z]+(?:-[0-9A-Za-z]+)+)$/m.exec(added.stdout)![1]!;
    return added;
  },
  'service-local login': (line) =>
    inProcess(wordsOf(line), {
      env: environment(),
      person: createTerminal([
        ['Password of ada', `${PASSWORD}\r`],
        ['Code of the app, or a recovery code', `${recovery}\r`],
      ]),
    }),
};
let recovery = '';

function run(line: string): Promise<Result> {
  const special = Object.entries(SPECIAL).find(([start]) => line.startsWith(start));
  if (special !== undefined) return special[1](line);
  // The first bot proves that lines run in a shell.
  const isPlain = /^[\w./:@= -]+$/.test(line);
  return isPlain ? inProcess(wordsOf(line), { cwd: ROOT, env: environment() }) : shell(line, ROOT);
}

/** Expected output by the beginning of the line. Each line of a block needs an entry. */
type Claims = Readonly<Record<string, RegExp>>;

/** Runs the lines in order up to the first unexpected output. @returns the failure, if any */
async function faultsOf(
  lines: readonly string[],
  claims: Claims,
  runLine: (line: string) => Promise<Result>,
): Promise<readonly string[]> {
  const named = Object.keys(claims);
  const unknown = lines.filter((line, at) => !line.startsWith(named[at] ?? line + '\0'));
  if (unknown.length > 0 || lines.length !== named.length) {
    return [`${lines.length} lines for ${named.length} claims; first without its own:`, ...unknown];
  }
  for (const [at, line] of lines.entries()) {
    const { code, stdout, stderr } = await runLine(line);
    if (code !== 0 || !claims[named[at]!]!.test(stdout + stderr)) {
      return [line, `exit code ${code}`, stdout, stderr];
    }
  }
  return [];
}

test('a first bot is created, validated and run as described in README.md', async () => {
  const lines = linesOf('service-local init my-bot');
  const claims = {
    'service-local init my-bot': /^my-bot\/bot\.yaml$/m,
    'cd my-bot': /^$/,
    'service-local validate bot.yaml': /^bot\.yaml: valid$/m,
    'service-local backtest bot.yaml': /Max drawdown .*\n.*[^]*report: .*\/runs\/.*report\.html/,
  };
  let cwd = work;
  const faults = await faultsOf(lines, claims, (line) => {
    const here = cwd;
    if (line.startsWith('cd ')) cwd = join(cwd, wordsOf(line)[0]!);
    return shell(line, here);
  });
  expect(faults).toEqual([]);
});

describe('a server', () => {
  test('is started, and a running session on it is halted, as described in README.md', async () => {
    const lines = linesOf('service-local server');
    const claims = {
      'service-local data import': /^catalog:\/\/SPX: 5,105 bars of 1d/m,
      'service-local server': /listening on http/,
      'service-local identity administrators add ada': /^ada can log in now/m,
      'service-local login --name ada':
        /^ada is logged in to http.*\nfor read, write, trade, halt/m,
      'service-local bots apply': /paper.*created/,
      'service-local bots paper start paper --speed 86400 --detach':
        /is queued[^]*the next bar comes in 1 s and the session ends in 2 hours at the earliest/,
      'service-local bots paper status paper': /2000-01-/,
      'service-local bots halt paper': /^1 deployment and \d+ orders? verified to have ended/m,
      'service-local bots resume paper': /^paper can be started again/m,
      'service-local bots paper start paper --speed max': /Total return .*\n[^]*Max drawdown/,
    };
    const faults = await faultsOf(lines, claims, async (line) => {
      if (!line.startsWith('service-local bots paper status')) return run(line);
      // A person would type this after the first bar.
      return vi.waitUntil(
        async () => {
          const status = await run(line);
          return /2000-01-/.test(status.stdout) ? status : undefined;
        },
        { timeout: 30_000, interval: 100 },
      );
    });
    expect(faults).toEqual([]);
    const { stdout } = await shell('service-local bots halts --json', ROOT);
    const { halts } = JSON.parse(stdout) as { halts: { lifted_at: unknown }[] };
    expect(halts).toEqual([expect.objectContaining({ lifted_at: expect.any(String) as string })]);
  });

  test('does what docs/tutorials/server.md describes beyond README.md', async () => {
    const before = new Set(linesToRun('README.md'));
    const lines = linesToRun('docs/tutorials/server.md').filter((line) => !before.has(line));
    const claims = {
      'service-local bots backtest paper': /Total return/,
      'service-local bots events paper': /run\.ended/,
      'service-local bots snapshot paper': /paper/,
      'service-local bots events verify paper': /^Events verified: [\d,]+$/m,
      'service-local bots parity paper': /^Equal: 5,105 bars, \d+ order events$/m,
    };
    expect(await faultsOf(lines, claims, run)).toEqual([]);
  });
});
