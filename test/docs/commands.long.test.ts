import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inProcess } from '../cli/in-process.ts';
import { BASIC_ENV, BIN } from '../cli/service-local.ts';
import { startServer, type RunningServer } from '../server/running.ts';
import { blocksOf, linesToRun, PAGES, ROOT, withoutComment } from './documents.ts';

/** Run by `test/cli/readme.long.test.ts`, on a server that has no administrator yet. */
const ELSEWHERE: ReadonlySet<string> = new Set(['README.md', 'docs/tutorials/server.md']);

/** Commands whose results the pages assume: market data, and two bots. */
const BEFORE = [
  'service-local data import examples/data/sp500-daily.csv --symbol SPX',
  'service-local bots apply -f examples/paper.yaml -f examples/research.yaml',
  'service-local bots backtest research',
];

let home: string;
let server: RunningServer;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'service-local-docs-'));
  await mkdir(join(home, 'bin'));
  const command = join(home, 'bin/service-local');
  await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`);
  await chmod(command, 0o755);
  server = await startServer({ kind: 'sqlite', location: { file: join(home, 'any') } } as never);
  const scopes = 'read,write,trade,halt,license,admin';
  const add = ['identity', 'administrators', 'add', 'ada', '--token', scopes, '--password-stdin'];
  const added = await inProcess([...add, '--json'], {
    env: { HOME: home, SERVICE_LOCAL_HOME: home },
    input: 'correct horse battery',
  });
  const { token } = JSON.parse(added.stdout) as { token: { token: string } };
  env = {
    ...BASIC_ENV,
    PATH: [join(home, 'bin'), BASIC_ENV.PATH].join(delimiter),
    HOME: home,
    SERVICE_LOCAL_HOME: home,
    SERVICE_LOCAL_SERVER_URL: server.url,
    SERVICE_LOCAL_TOKEN: token.token,
  };
  const directory = await newDirectory();
  for (const line of BEFORE) {
    const { code, output } = await shell(line, directory);
    if (code !== 0) throw new Error(`${line}\n${output}`);
  }
});
afterAll(async () => {
  await server.stop();
  await rm(home, { recursive: true });
});

/** With a copy of the examples, so that runs leave nothing beside them. */
async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(home, 'work-'));
  await cp(join(ROOT, 'examples'), join(directory, 'examples'), { recursive: true });
  return directory;
}

interface Result {
  readonly code: number | null;
  readonly output: string;
}

function shell(line: string, cwd: string): Promise<Result> {
  return new Promise((resolve) => {
    execFile('bash', ['-c', line], { cwd, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
}

const pages = PAGES.filter((page) => !ELSEWHERE.has(page) && linesToRun(page).length > 0);

test.each(pages)('the commands in %s do what it shows', { timeout: 300_000 }, async (page) => {
  let cwd = await newDirectory();
  let shown = '';
  for (const { language, lines, notRun } of blocksOf(page)) {
    // A block of text shows output of the commands above it.
    if (language === 'text' && notRun === undefined) {
      for (const line of lines) expect(shown).toContain(line);
    }
    shown = '';
    if (language !== 'sh' || notRun !== undefined) continue;
    for (const line of lines.map(withoutComment)) {
      const [word, directory] = line.split(' ');
      if (word === 'cd') {
        cwd = join(cwd, directory!);
        continue;
      }
      const { code, output } = await shell(line, cwd);
      expect(code, `${line}\n${output}`).toBe(0);
      shown += output;
    }
  }
});
