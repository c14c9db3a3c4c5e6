import { expect, it, test, vi } from 'vitest';
import { EarlierBars } from '../../../src/engine/earlier-bars.ts';
import { Engine } from '../../../src/engine/engine.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { explainStrategyError } from '../../../src/engine/strategy-error.ts';
import { allocateBars, barsFromRows } from '../../../src/market/bars.ts';
import { readFirst, readOrdered } from '../../../src/trading/sandbox/messages.ts';
import { createPlayer } from '../../../src/trading/sandbox/player.ts';
import type { Sandbox, SandboxOptions } from '../../../src/trading/sandbox/sandbox.ts';
import { SANDBOX_FLAGS, frameReader } from '../../../src/trading/sandbox/strategy-process.ts';
import { collectGarbage } from '../../collect-garbage.ts';
import { runNode } from '../../cli/service-local.ts';
import { isAtLength } from '../../length.ts';
import { CONFIG, open, STEPS, strategyThat } from './bundles.ts';
import { childrenOf, isRunning } from './processes.ts';

/** Runs a strategy over three bars, and returns its order events and its error. */
async function outcomeOf(text: string, options: Partial<SandboxOptions> = {}) {
  let sandbox: Awaited<ReturnType<typeof open>>;
  try {
    sandbox = await open(text, options);
  } catch (error) {
    return { events: [], error };
  }
  const { strategy, take, close } = sandbox;
  const instruments = [{ symbol: 'A', bars: allocateBars(0) }];
  const engine = new Engine({ instruments, strategy, params: {}, config: CONFIG });
  let error: unknown;
  try {
    await take(STEPS);
    for (const step of STEPS) engine.append(step);
    engine.advance(3);
  } catch (caught) {
    const context = { strategy: 'own', done: engine.done, timeoutMs: 0 };
    error = explainStrategyError(caught, context);
  } finally {
    await close();
  }
  return { events: [...engine.result().journal.events()].map(({ kind }) => kind), error };
}

const failed = (message: RegExp) =>
  expect.objectContaining({ message: expect.stringMatching(message) });

/** A strategy tries each of these and reports the results in the error that it throws. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  process: 'process.exit()',
  module: 'require("fs")',
  network: 'fetch("http://127.0.0.1")',
  socket: 'new WebSocket("ws://127.0.0.1")',
  machine: 'WebAssembly.Memory',
  timer: 'setTimeout(() => {})',
  code: 'new Function("return 1")()',
  array: 'Array.prototype.push = 1',
  object: 'Object.prototype.toJSON = () => "forged"',
  bytes: 'Object.defineProperty(Uint8Array.prototype, "length", { get() { for (;;); } })',
  iterator: 'Object.getPrototypeOf([].values()).next = 1',
  generator: 'Object.getPrototypeOf(Object.getPrototypeOf(function* () {}())).next = 1',
  promise: 'Promise.prototype.then = 1',
  symbol: 'Array.prototype[Symbol.iterator] = 1',
  json: 'JSON.stringify = 1',
  global: 'globalThis.Map = 1',
  globals: 'Object.setPrototypeOf(globalThis, { x: 1 })',
  stack: 'Error.prepareStackTrace = () => {}',
};

test('a strategy can neither reach anything outside of it nor change built-in objects', async () => {
  const tries = Object.entries(FORBIDDEN).map(
    ([name, code]) => `try { ${code}; done.push('${name}'); } catch {}`,
  );
  const text = strategyThat(`
    console.log('x'.repeat(1e6));
    const done = [];
    ${tries.join('\n')}
    class Own extends Error { constructor(text) { super(text); this.name = 'Own'; } }
    const own = {};
    own.toString = () => 'text';
    throw new Own([own, done, typeof performance.now].join(' '));
  `);
  const { events, error } = await outcomeOf(text);
  expect({ events, error }).toEqual({
    events: [],
    error: failed(/threw at bar 1 .*Own: text {2}function\n[^]*own\.ts/),
  });
});

test('the sandbox flags deny files, network, processes and threads even to code with access to Node modules', async () => {
  const tries = {
    read: 'require("fs").readFileSync("/etc/passwd")',
    write: 'require("fs").writeFileSync("x", "")',
    start: 'require("child_process").spawnSync("true")',
    thread: 'new (require("worker_threads").Worker)("", { eval: true })',
    database: 'require("node:sqlite")',
    connect: 'process.binding("tcp_wrap")',
    code: 'new Function("return 1")()',
  };
  const code = Object.entries(tries).map(
    ([name, one]) => `try { ${one}; console.log('${name}'); } catch {}`,
  );
  const connect = `require('net').connect(1, '127.0.0.1').on('error', ({ code }) => console.log(code));`;
  const { stdout } = await runNode([...SANDBOX_FLAGS, '-e', code.join('\n') + connect]);
  expect(stdout).toBe('ERR_ACCESS_DENIED\n');
});

// Each starts a process. `own-strategy.cli.test.ts` rejects these calls without one: `Date.now()` in
// `npm test`, the others in `npm run test:long`.
test.runIf(isAtLength).each([
  ['a clock inside try and catch', 'try { new Date() } catch {}', '', 'new Date() without a time'],
  ['randomness while it loads', '', 'const seed = Math.random();', 'Math.random()'],
  ['a clock', 'Date.now()', '', 'Date.now()'],
  ['another clock', 'performance.now()', '', 'performance.now()'],
  ['randomness', 'Math.random()', '', 'Math.random()'],
] as const)('a strategy that uses %s fails', async (_, onBar, top, call) => {
  const { events, error } = await outcomeOf(strategyThat(onBar, top));
  expect(events).toEqual([]);
  expect(error).toMatchObject({
    code: 'strategy_failed',
    message: `/strategy/own.ts:${top === '' ? 9 : 2}: a strategy must not call ${call}`,
  });
});

test.runIf(isAtLength).each([
  [
    'places an order after an await',
    'broker.target(instruments[0], 1)',
    /orders must be placed within/,
  ],
  ['rejects two promises', 'Promise.reject(new Error("late")); throw new Error("later")', /late\b/],
])('a strategy that %s fails at that step', async (_, code, message) => {
  const { events, error } = await outcomeOf(
    strategyThat(`Promise.resolve().then(() => { ${code}; });`),
  );
  expect(events).toEqual([]);
  expect(error).toMatchObject({ code: 'strategy_failed' });
  expect(error).toEqual(failed(message));
  expect(error).toEqual(failed(/\/strategy\/own\.ts:9/));
});

test.runIf(isAtLength)('the time zone of a strategy is UTC', async () => {
  const text = strategyThat('throw new Error(String(new Date(2020, 0, 1).toISOString()));');
  expect((await outcomeOf(text)).error).toEqual(failed(/2020-01-01T00:00:00/));
});

const HOSTILE: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  [
    'imports a file outside the bundle',
    strategyThat('', 'import x from "../etc/passwd";'),
    /cannot import/,
  ],
  [
    'fills its heap',
    strategyThat('for (const x = [];;) x.push(new Array(1e4).fill(0.5))'),
    /128 MB/,
  ],
  ['awaits while it loads', strategyThat('', 'await new Promise(() => {});'), /own\.ts/],
  [
    'fills buffers',
    strategyThat('for (const x = [];;) x.push(new Uint8Array(1e6).fill(1))'),
    /128 MB/,
  ],
  [
    'forges its declaration',
    strategyThat('').replace(
      'params: {}',
      'params: Object.defineProperty({}, "toJSON", { value: () => 1 })',
    ),
    /sent an invalid message/,
  ],
];

it.runIf(isAtLength).concurrent.each(HOSTILE)(
  'a strategy that %s fails',
  async (_what, text, message) => {
    const { events, error } = await outcomeOf(text, { memoryMb: 128 });
    expect(error).toBeInstanceOf(ServiceError);
    expect({ events, error }).toEqual({ events: [], error: failed(message) });
  },
);

const LOOP = 'for (;;);';
const HANGING = [
  [
    'when it is created',
    strategyThat('', '', `try { ${LOOP} } finally { ${LOOP} }`),
    /from bar 1 within/,
  ],
  [
    'in a getter of an error that it throws',
    strategyThat(`throw Object.defineProperty(new Error(''), 'stack', { get() { ${LOOP} } });`),
    /threw a value that cannot be read/,
  ],
] as const;

it.runIf(isAtLength).concurrent.each(HANGING)(
  'a strategy that loops forever %s is stopped',
  async (_, text, message) => {
    const { error } = await outcomeOf(text, { timeoutMs: 200 });
    expect(error).toEqual(failed(message));
  },
);

test.runIf(isAtLength)(
  'the lines of a strategy arrive with their bars, also those of a step that fails',
  async () => {
    const text = strategyThat(
      `log('"__proto__": ' + instruments[0].count); if (instruments[0].count === 3) throw new Error('end');`,
      '',
      "for (let at = 0; at < 1e5; at += 1) log('created');",
    );
    const { strategy, take, close } = await open(text, { keepsLog: true });
    const instruments = [{ symbol: 'A', bars: allocateBars(0) }];
    const engine = new Engine({
      instruments,
      strategy,
      params: {},
      config: CONFIG,
      keepsLog: true,
    });
    await take(STEPS);
    await close();
    for (const step of STEPS) engine.append(step);
    expect(() => engine.advance(3)).toThrow('end');
    const log = engine.takeLog().map(({ time, text: line }) => `${time} ${line}`);
    expect(log.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => '1 created'));
    expect(log.slice(20)).toEqual([
      '1 [only 20 lines of a bar are kept]',
      '2 "__proto__": 2',
      '3 "__proto__": 3',
    ]);
  },
);

test('a process that sends no message in time is killed', async () => {
  const before = await childrenOf(process.pid);
  const { take, close, strategy } = await open(strategyThat(''), { timeoutMs: 500 });
  const child = (await childrenOf(process.pid)).find((pid) => !before.includes(pid));
  process.kill(child!, 'SIGSTOP');
  await take(STEPS);
  const instruments = [{ symbol: 'A', bars: allocateBars(0) }];
  const engine = new Engine({ instruments, strategy, params: {}, config: CONFIG });
  engine.append(STEPS[0]!);
  expect(() => engine.advance(1)).toThrow(/did not answer within/);
  await close();
  expect(await isRunning(child!)).toBe(false);
});

test('createPlayer accepts commands only for sent steps, in order', () => {
  const ordered = (done: number, ...steps: number[]): Buffer => {
    const commands = steps.map((step) => [step, 'target', 0, 1]);
    return Buffer.from(JSON.stringify({ done, commands }));
  };
  const player = createPlayer('own');
  player.add(ordered(2, -1, 0, 1), 4);
  for (const forged of [
    ordered(1), // Fewer steps than already done.
    ordered(5), // More steps than sent.
    ordered(3, 1), // A command of a completed step.
    ordered(3, 3), // A command of a step not done yet.
    ordered(4, 3, 2),
    Buffer.from('"forged"'),
  ]) {
    expect(() => player.add(forged, 4)).toThrow(/sent an invalid message/);
  }
  player.add(ordered(4, 2, 3), 4);
  expect(player).toMatchObject({ done: 4, hasFailed: false });
});

test('messages with invalid numbers or names are rejected', () => {
  const ordered = (text: string) => readOrdered(Buffer.from(`{"done":1,"commands":[${text}]}`));
  expect(ordered('[0,"target",0,0.5]')).toBeDefined();
  for (const forged of [
    '[0,"target",0,1e999]',
    '[0,"target",-1,1]',
    '[0.5,"target",0,1]',
    '[0,"order",0,{"side":"buy","quantity":1,"__proto__":{"x":1}}]',
    '[0,"order",0,{"side":"buy","quantity":null}]',
    '[0,"exit"]',
    `[0,"log","${'x'.repeat(402)}"]`,
  ]) {
    expect(ordered(forged)).toBeUndefined();
  }
  const params = '{"__proto__":{"kind":"flag","default":true}}';
  const loaded = `{"loaded":{"name":"x","description":"","params":${params}}}`;
  expect(readFirst(Buffer.from(loaded))).toBeUndefined();
});

test('frameReader joins chunks of any size and rejects messages that are too long', () => {
  const message = (text: string) => {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(text.length);
    return Buffer.concat([head, Buffer.from(text)]);
  };
  const read = frameReader();
  const bytes = Buffer.concat([message('one'), message(''), message('three')]);
  const frames = [...bytes].flatMap((byte) => read(Buffer.from([byte]))!);
  expect(frames.map(String)).toEqual(['one', '', 'three']);
  expect(frameReader()(Buffer.from([0, 0, 0, 1]))).toBeUndefined();
});

/** Sends a process bars before a run and a step, and returns the copy of these bars. */
async function sendEarlier({ warmUp, take }: Sandbox): Promise<WeakRef<object>> {
  const read = vi.spyOn(EarlierBars.prototype, 'of');
  warmUp({ bars: { A: barsFromRows([[0, 10, 12, 9, 11, 1]]) } });
  await take(STEPS.slice(0, 1));
  const found = read.mock.results[0]!.value as ReturnType<EarlierBars['of']>;
  read.mockClear();
  read.mockRestore();
  return new WeakRef(found.warmUp!);
}

test.runIf(isAtLength)(
  'the bars before a run are released once the process of its strategy has received them',
  async () => {
    const sandbox = await open(strategyThat(''));
    try {
      const copy = await sendEarlier(sandbox);
      await collectGarbage();
      expect(copy.deref()).toBeUndefined();
      await sandbox.take(STEPS.slice(1));
    } finally {
      await sandbox.close();
    }
  },
);
