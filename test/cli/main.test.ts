import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { verbHelp } from '../../src/cli/command.ts';
import { loadVerbs } from '../../src/cli/verb.ts';
import { VERBS } from '../../src/cli/verbs.ts';
import { isAtLength, some } from '../length.ts';
import { inProcess } from './in-process.ts';
import { SAMPLE_VERBS } from './sample-verbs.ts';
import { runNode, type Result, type RunOptions } from './service-local.ts';

const MADE_UP = fileURLToPath(new URL('./sample-cli.ts', import.meta.url));

const madeUp = (args: readonly string[], options?: RunOptions): Promise<Result> =>
  inProcess(args, { ...options, verbs: SAMPLE_VERBS });

const inOwnProcess = (args: readonly string[]): Promise<Result> => runNode([MADE_UP, ...args]);

describe('help', () => {
  it('lists every verb', async () => {
    const { code, stdout, stderr } = await inProcess(['--help']);
    expect(code).toBe(0);
    expect(stderr).toBe('');
    for (const { path, verb } of await loadVerbs(VERBS)) {
      const summary = verb.summary.slice(0, 20);
      expect(stdout).toMatch(new RegExp(`^  ${path.join(' ')} +${summary}`, 'm'));
    }
  });

  it('lists the verbs of a group, and shows one verb with its examples', async () => {
    const group = await inProcess(['config', '--help']);
    expect(group.stdout).toMatch(/^ {2}explain +show/m);
    expect(group.stdout).not.toContain('completion');
    const one = await inProcess(['config', 'explain', '--help']);
    expect(one.stdout).toContain('Usage: service-local config explain [options] <setting>');
    expect(one.stdout).toContain('$ service-local config explain workers');
    expect(await inProcess(['help', 'config', 'explain'])).toEqual(one);
  });

  it('lists longer verbs that begin with the words of a verb', async () => {
    const { stdout } = await madeUp(['echo', '--help']);
    expect(stdout).toMatch(/^See also:\n {2}service-local echo twice: do gate$/m);
  });

  it.each(VERBS.map(({ path, load }) => [path.join(' '), load] as const))(
    'shows examples that run %s',
    async (name, load) => {
      const { verb } = await load();
      expect(verb.examples.length).toBeGreaterThan(0);
      for (const example of verb.examples) expect(`${example} `).toMatch(new RegExp(`^${name} `));
    },
  );

  it.each(VERBS.map((entry) => [entry.path.join(' '), entry] as const))(
    'fits the help of %s into 80 columns, except for examples',
    async (_name, entry) => {
      const [help] = (await verbHelp(VERBS, entry, 80)).split('\nExamples:\n');
      expect(help!.split('\n').filter((line) => line.length > 80)).toEqual([]);
    },
  );

  it('is one document with --json', async () => {
    const { stdout } = await inProcess(['config', 'list', '--help', '--json']);
    expect(JSON.parse(stdout)).toEqual({ help: expect.stringContaining('Usage:') });
  });
});

describe('an invalid command line', () => {
  it.each([
    [['conifg'], "unknown command 'conifg'", 'Did you mean service-local config?'],
    [['config', 'lst'], "unknown command 'lst'", 'Did you mean service-local config list?'],
    [['explain'], "unknown command 'explain'", 'Did you mean service-local config explain?'],
    [['zebra', 'list'], "unknown command 'zebra'", 'See `service-local --help`.'],
    [['config', 'list', '--jsn'], "unknown option '--jsn'", 'Did you mean --json?'],
    [['--jsn', 'config', 'list'], "unknown option '--jsn'", 'Did you mean --json?'],
    [['config', 'explain'], "missing required argument 'setting'", 'config explain --help'],
    [['config', 'list', 'x'], 'too many arguments', 'config list --help'],
    [['completion', 'fish'], "shell: 'fish' is not one of bash, zsh", 'completion --help'],
    [['completion', 'bsh'], "shell: 'bsh' is not one of bash, zsh", 'Did you mean bash?'],
    [
      ['data', 'import', 'x.csv', '--timeframe', 'h1'],
      "--timeframe: 'h1' is not one of 1m, 2m,",
      'data import --help',
    ],
    [
      ['data', 'import', 'x.csv', '--timefram', '1h'],
      'unknown option',
      'Did you mean --timeframe?',
    ],
    [['config'], 'a command is missing', 'service-local config --help'],
    [[], 'a command is missing', 'service-local --help'],
  ])('%j is rejected with a remedy', async (args, what, remedy) => {
    const { code, stdout, stderr } = await inProcess(args);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^error usage: /m);
    expect(stderr).toContain(what);
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^→ /);
    expect(stderr).toContain(remedy);
  });

  it('is one document with --json', async () => {
    const { code, stdout, stderr } = await inProcess(['--json', 'conifg']);
    expect(code).toBe(2);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({
      error: {
        code: 'usage',
        reason: null,
        message: "service-local: unknown command 'conifg'",
        remedy: 'Did you mean service-local config?',
        problems: [],
      },
    });
  });
});

describe('arguments and options', () => {
  it('reach the verb parsed; the last of two values wins', async () => {
    const { stdout } = await madeUp(
      (
        '--json echo a b c -p fast=5:50:5 --param=slow=-1 --out x --out y --cash 100 ' +
        '--verify-lock --no-html --workers 3'
      ).split(' '),
    );
    expect(JSON.parse(stdout)).toEqual({
      args: { spec: 'a', more: ['b', 'c'] },
      options: {
        out: 'y',
        param: ['fast=5:50:5', 'slow=-1'],
        profile: 'own',
        cash: 100,
        verifyLock: true,
        noHtml: true,
      },
      workers: 3,
      interactive: false,
    });
  });

  it('have an empty, undefined or default value if absent', async () => {
    const { stdout } = await madeUp(['echo', 'a', '--json'], {
      env: { SERVICE_LOCAL_WORKERS: '5' },
    });
    expect(JSON.parse(stdout)).toEqual({
      args: { spec: 'a', more: [] },
      options: { param: [], profile: 'own', verifyLock: false, noHtml: false },
      workers: 5,
      interactive: false,
    });
  });

  it('are never taken for verbs', async () => {
    expect((await madeUp(['echo', 'twice'])).code).toBe(5);
    expect((await madeUp(['echo', '--out', 'twice', 'a'])).code).toBe(0);
    expect((await madeUp(['echo', '--', 'twice'])).code).toBe(0);
  });

  it('can be required, which the help shows', async () => {
    const { code, stderr } = await madeUp(['greet']);
    expect(code).toBe(2);
    expect(stderr).toContain("error usage: required option '--name <text>' not specified");
    expect((await madeUp(['greet', '--help'])).stdout).toMatch(
      /^ {2}--name <text> +whom \(required\)$/m,
    );
    const { stdout } = await madeUp(['greet', '--name', 'Ada', '--json']);
    expect(JSON.parse(stdout)).toEqual({ greeting: 'hello ADA' });
  });

  it('are named in the error about their value', async () => {
    const { code, stderr } = await madeUp(['echo', 'a', '--cash', '1e3']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error usage: --cash: '1e3' is no amount$/m);
  });
});

describe('the result of a verb', () => {
  it('goes to stdout, its failure to stderr, and the failure sets the exit code', async () => {
    const human = await madeUp(['gate']);
    expect(human).toEqual({
      code: 5,
      stdout: 'sharpe 0.4\n',
      stderr: 'error gate_not_met: sharpe is 0.4, below 0.5\n',
    });
    const machine = await madeUp(['gate', '--json']);
    expect(machine.code).toBe(5);
    expect(JSON.parse(machine.stdout)).toEqual({ sharpe: 0.4 });
  });

  it('lists every problem and a remedy on a failure', async () => {
    const human = await madeUp(['refuse']);
    expect(human).toEqual({
      code: 3,
      stdout: '',
      stderr: [
        'error invalid_spec: bot.yaml has 2 problems',
        '  bot.yaml:3:5 BOT1 no name',
        '  /spec/rsk BOT2 unknown (did you mean risk?)',
        '→ Correct them.',
        '',
      ].join('\n'),
    });
    const machine = await madeUp(['refuse', '--json']);
    expect(machine.code).toBe(3);
    expect(machine.stderr).toBe('');
    expect(JSON.parse(machine.stdout).error).toMatchObject({
      code: 'invalid_spec',
      remedy: 'Correct them.',
      problems: [{ line: 3 }, { pointer: '/spec/rsk' }],
    });
  });

  it('contains no control characters', async () => {
    const { code, stderr } = await madeUp(['hostile']);
    expect(code).toBe(3);
    expect(stderr.split('\n').map((line) => line.trimEnd())).toEqual([
      'note: gone',
      'error invalid_spec: no way',
      '  b .yaml BOT1 ab error c: d',
      '→ Go .',
      '',
    ]);
  });

  it.each(
    some(1, [
      [['chatty', '--json'], '{\n  "answer": 42\n}\n'],
      [['chatty'], '42\n'],
    ]),
  )('is the only output on stdout, whatever strategies log: %j', async (args, expected) => {
    const { code, stdout, stderr } = await inOwnProcess(args);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expected });
    expect(stderr).toMatch(/^log\ninfo\n[^]*late\n$/);
  });

  it('is a stack trace and exit code 1 for an unexpected error', async () => {
    const human = await madeUp(['crash']);
    expect(human.code).toBe(1);
    expect(human.stdout).toBe('');
    expect(human.stderr).toMatch(/^error failure: x is not a function$/m);
    expect(human.stderr).toMatch(/^→ This is a bug in service-local \d/m);
    expect(human.stderr).toMatch(/^ {4}at .*sample-verbs\.ts/m);
    const machine = await madeUp(['crash', '--json']);
    expect(machine.code).toBe(1);
    expect(JSON.parse(machine.stdout).error.message).toBe('x is not a function');
    expect(machine.stderr).toMatch(/^ {4}at .*sample-verbs\.ts/m);
  });
});

describe('output', () => {
  const ESCAPE = '\u001B[';

  it.each<[string, readonly string[], Record<string, string>, boolean]>([
    ['is off in a pipe', [], {}, false],
    ['is on with FORCE_COLOR', [], { FORCE_COLOR: '1' }, true],
    ['is off by the option despite FORCE_COLOR', ['--no-color'], { FORCE_COLOR: '1' }, false],
    [
      'is on by the setting despite NO_COLOR',
      [],
      { SERVICE_LOCAL_COLOR: 'always', NO_COLOR: '1' },
      true,
    ],
  ])('color %s', async (_name, flags, env, on) => {
    const { stdout, stderr } = await madeUp(['gate', ...flags], { env });
    expect([stdout.includes(ESCAPE), stderr.includes(ESCAPE)]).toEqual([on, on]);
  });
});

describe('a closed pipe', () => {
  it.runIf(isAtLength)('ends the command without an error', async () => {
    const script = '"$0" "$1" many-lines | head -n 1; echo "code ${PIPESTATUS[0]}"';
    const bash = spawn('bash', ['-c', script, process.execPath, MADE_UP]);
    const [stdout, stderr] = await Promise.all([text(bash.stdout), text(bash.stderr)]);
    expect(stdout).toBe('line 0\ncode 0\n');
    expect(stderr).toBe('');
  });
});

describe('an interrupt', () => {
  async function waiting(...args: string[]): Promise<{
    child: ReturnType<typeof spawn>;
    ended: Promise<[number | null, NodeJS.Signals | null]>;
    said: (pattern: RegExp) => Promise<void>;
  }> {
    const child = spawn(process.execPath, [MADE_UP, 'wait', ...args], { stdio: 'pipe' });
    let stderr = '';
    const listeners = new Set<() => void>();
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
      for (const listener of listeners) listener();
    });
    const said = (pattern: RegExp): Promise<void> =>
      new Promise((resolve) => {
        const check = (): void => {
          if (pattern.test(stderr)) resolve();
        };
        listeners.add(check);
        check();
      });
    const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    await said(/ready/);
    return { child, ended, said };
  }

  it.each(some(1, ['SIGINT', 'SIGTERM'] as const))(
    'stops the verb gracefully with exit code 130 after %s',
    async (name) => {
      const { child, ended, said } = await waiting();
      child.kill(name);
      expect(await ended).toEqual([130, null]);
      await said(new RegExp(`error interrupted: interrupted by ${name}`));
    },
  );

  it.runIf(isAtLength)('counts an interrupt once if npm delivers it twice', async () => {
    const { child, ended, said } = await waiting('--slow');
    child.kill('SIGINT');
    child.kill('SIGINT');
    await said(/stopping/);
    child.stdin!.end();
    expect(await ended).toEqual([130, null]);
  });

  it.runIf(isAtLength)('kills a verb that does not stop if it is repeated', async () => {
    const { child, ended, said } = await waiting('--stubborn');
    child.kill('SIGINT');
    await said(/stopping/);
    const again = setInterval(() => child.kill('SIGINT'), 20);
    expect(await ended).toEqual([null, 'SIGINT']);
    clearInterval(again);
  });
});
