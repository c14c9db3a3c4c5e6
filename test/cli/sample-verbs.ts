/** Verbs for rare cases of the CLI. */
import { ServiceError } from '../../src/base/errors.ts';
import { defineVerb, type Verb, type VerbEntry } from '../../src/cli/verb.ts';

const gate = defineVerb({
  summary: 'do gate',
  examples: ['gate'],
  run: () => ({
    data: { sharpe: 0.4 },
    show: (out) => out.line(`sharpe ${out.style.red('0.4')}`),
    failure: new ServiceError('gate_not_met', 'sharpe is 0.4, below 0.5'),
  }),
});

const refuse = defineVerb({
  summary: 'do refuse',
  examples: ['refuse'],
  run() {
    throw new ServiceError('invalid_spec', 'bot.yaml has 2 problems', {
      remedy: 'Correct them.',
      problems: [
        { code: 'BOT1', message: 'no name', file: 'bot.yaml', line: 3, column: 5 },
        { code: 'BOT2', message: 'unknown', pointer: '/spec/rsk', suggestion: 'risk' },
      ],
    });
  },
});

const hostile = defineVerb({
  summary: 'do hostile',
  examples: ['hostile'],
  run({ message }) {
    message('note: \u001B[2Jgone');
    throw new ServiceError('invalid_spec', 'no\u001B]0;title\u0007 way\u009B1m', {
      remedy: 'Go\u0007.',
      problems: [{ code: 'BOT1', message: 'a\u001B[31mb\nerror c: d', file: 'b\u0007.yaml' }],
    });
  },
});

/** Logs in all the ways in which a strategy can. */
const chatty = defineVerb({
  summary: 'do chatty',
  examples: ['chatty'],
  run() {
    console.log('log');
    console.info('info');
    console.table([1]);
    setImmediate(() => console.log('late'));
    return { data: { answer: 42 }, show: (out) => out.line('42') };
  },
});

const crash = defineVerb({
  summary: 'do crash',
  examples: ['crash'],
  run() {
    throw new TypeError('x is not a function');
  },
});

const echo = defineVerb({
  summary: 'do echo',
  arguments: {
    spec: { description: 'a file', complete: 'file' },
    more: { description: 'others', optional: true, variadic: true },
  },
  options: {
    out: { value: 'dir', description: 'where to', complete: 'directory' },
    param: { value: 'key=value', description: 'a parameter', short: 'p', repeat: true },
    profile: { value: 'name', description: 'whose way', choices: ['lean', 'own'], default: 'own' },
    cash: { value: 'amount', description: 'money', parse: parseAmount },
    verifyLock: { description: 'compare' },
    noHtml: { description: 'less' },
  },
  settings: ['workers'],
  examples: ['echo a'],
  run: ({ settings, interactive }, args, options) => ({
    data: { args, options, workers: settings.workers, interactive },
    show: (out) => out.line('echo'),
  }),
});

function parseAmount(text: string): number {
  if (/^[0-9]+$/.test(text)) return Number(text);
  throw new ServiceError('usage', `'${text}' is no amount`);
}

const greet = defineVerb({
  summary: 'do greet',
  options: { name: { value: 'text', description: 'whom', required: true } },
  examples: ['greet --name Ada'],
  run: (_context, _args, { name }) => ({
    data: { greeting: `hello ${name.toUpperCase()}` },
    show: () => {},
  }),
});

/** The output exceeds the buffer of a pipe, so the CLI notices a closed pipe. */
const manyLines = defineVerb({
  summary: 'do many-lines',
  examples: ['many-lines'],
  run: () => ({
    data: {},
    show(out) {
      for (let i = 0; i < 20_000; i++) out.line(`line ${i}`);
    },
  }),
});

const wait = defineVerb({
  summary: 'do wait',
  options: {
    stubborn: { description: 'do not end when asked to' },
    slow: { description: 'do not end before standard input does' },
  },
  examples: ['wait'],
  async run({ signal, message, io }, _args, { stubborn, slow }) {
    const alive = setInterval(() => {}, 1000);
    const interrupted = new Promise((_resolve, reject) => {
      const end = (): void => reject(new Error('work was cut short'));
      signal.addEventListener('abort', () => {
        if (slow) io.stdin.resume().once('end', end);
        else if (!stubborn) end();
      });
    });
    message('ready');
    try {
      await interrupted;
    } finally {
      clearInterval(alive);
    }
    return { data: {}, show: () => {} };
  },
});

function entry(path: string, verb: Verb): VerbEntry {
  return { path: path.split(' '), load: async () => ({ verb }) };
}

export const SAMPLE_VERBS: readonly VerbEntry[] = [
  entry('gate', gate),
  entry('refuse', refuse),
  entry('hostile', hostile),
  entry('chatty', chatty),
  entry('crash', crash),
  entry('echo', echo),
  entry('echo twice', gate),
  entry('greet', greet),
  entry('many-lines', manyLines),
  entry('wait', wait),
];
