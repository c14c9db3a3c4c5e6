import { Console } from 'node:console';
import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import { formatProblem } from '../base/format-problem.ts';
import { printable } from '../base/printable.ts';
import { resolveSettings } from '../base/resolve-settings.ts';
import type { Settings } from '../base/settings.ts';
import { packageVersion } from '../base/package-version.ts';
import {
  GLOBAL_FLAGS,
  fullName,
  isGlobalFlag,
  listHelp,
  parseInvocation,
  startsWith,
  verbHelp,
} from './command.ts';
import { abortOnInterrupt } from './interrupt.ts';
import { nameOptions } from './option-problems.ts';
import { makeOutput, makeProgress, makeStyle, wantsColor, writeLines } from './output.ts';
import type { Context, Io, Options, VerbEntry } from './verb.ts';
import { VERBS } from './verbs.ts';

const SILENT = { write: () => {} };

/**
 * Runs one command line and returns its exit code. Never throws: an error is printed on stderr or,
 * with `--json`, on stdout.
 *
 * @param argv the words after `service-local`.
 */
export async function run(
  argv: readonly string[],
  io: Io,
  verbs: readonly VerbEntry[] = VERBS,
): Promise<number> {
  for (const stream of [io.stdout, io.stderr]) ignoreBrokenPipe(stream);
  const json = hasFlag(argv, '--json');
  let color: Settings['color'] = hasFlag(argv, '--no-color') ? 'never' : 'auto';
  let isStream = false;
  let signal: AbortSignal | undefined;
  let options: Options | undefined;

  try {
    const { entry, path, rest } = findVerb(verbs, argv);
    if (!entry) return await listVerbs(verbs, path, rest, json, io);
    const { verb } = await entry.load();
    ({ options } = verb);
    const invocation = parseInvocation(path, verb, rest);
    if (invocation === 'help') {
      const help = await verbHelp(verbs, entry, io.stdout.columns);
      return printResult(io, json, { help }, help);
    }

    isStream = Object.entries(verb.options ?? {}).some(
      ([name, { streams }]) => streams && invocation.options[name] === true,
    );

    const { values: settings, sources } = resolveSettings(io.cwd(), io.env, invocation.flags, verb);
    color = settings.color;
    const message = (text: string): void => {
      if (!invocation.quiet) writeLines(io.stderr, printable(text));
    };
    const context: Context = {
      verbs,
      cwd: io.cwd(),
      io,
      settings,
      settingSources: sources,
      interactive: !(invocation.noInput || json || !io.stdin.isTTY),
      get signal() {
        return (signal ??= abortOnInterrupt(message));
      },
      message,
      progress: (label, total, before) =>
        makeProgress(invocation.quiet ? SILENT : io.stderr, label, total, before),
    };
    // Only the answer goes to stdout. What a strategy logs goes to stderr.
    Object.assign(console, new Console(io.stderr));
    const answer = await verb.run(context, invocation.args, invocation.options);

    if (json && answer.stream) await writeLinesOf(io, answer.stream);
    else if (json) writeDocument(io, answer.data);
    else {
      const style = await makeStyle(wantsColor(color, io.env, io.stdout));
      await answer.show(makeOutput(io.stdout, style));
    }
    const { failure, exitCode = 0 } = answer;
    if (!failure) return exitCode;
    await writeError(failure, color, io);
    return failure.exitCode;
  } catch (thrown) {
    const error = signal?.aborted && !(thrown instanceof ServiceError) ? signal.reason : thrown;
    return reportFailure(error, json && (isStream ? 'lines' : 'document'), color, io, options);
  } finally {
    // Node cannot abort a connection attempt or a DNS lookup, so the process exits in spite of them.
    if (signal?.aborted) setTimeout(() => io.exit(), EXIT_DELAY_MS).unref();
  }
}

const EXIT_DELAY_MS = 500;

/** Finds the longest verb that the words name. Global flags may precede it. */
export function findVerb(
  verbs: readonly VerbEntry[],
  argv: readonly string[],
): {
  readonly entry: VerbEntry | undefined;
  readonly path: readonly string[];
  readonly rest: readonly string[];
} {
  const words = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
  const path: string[] = [];
  const flags: string[] = [];
  let next = 0;
  for (const word of words) {
    if (isGlobalFlag(word)) flags.push(word);
    else if (verbs.some((entry) => startsWith(entry.path, [...path, word]))) path.push(word);
    else break;
    next++;
  }
  const entry = verbs.find((candidate) => candidate.path.join(' ') === path.join(' '));
  return { entry, path, rest: [...flags, ...words.slice(next)] };
}

/** Handles a command line without a verb: prints help or the version, or throws `usage`. */
async function listVerbs(
  verbs: readonly VerbEntry[],
  path: readonly string[],
  rest: readonly string[],
  json: boolean,
  io: Io,
): Promise<number> {
  const word = rest.find((candidate) => !isGlobalFlag(candidate));
  const isHelp = word === '--help' || word === '-h';
  const help = isHelp || word === undefined ? await listHelp(verbs, path, io.stdout.columns) : '';
  if (isHelp) return printResult(io, json, { help }, help);
  if (path.length === 0 && (word === '--version' || word === '-V')) {
    const version = packageVersion();
    return printResult(io, json, { version }, `${version}\n`);
  }
  const name = fullName(path);
  if (word === undefined) {
    if (!json) writeLines(io.stderr, help);
    throw new ServiceError('usage', `${name}: a command is missing`, {
      remedy: `See \`${name} --help\`.`,
    });
  }
  const meant = word.startsWith('-')
    ? closest(word, ['--help', '--version', ...GLOBAL_FLAGS.map(({ long }) => long)])
    : suggestVerb(verbs, path, word);
  throw new ServiceError(
    'usage',
    word.startsWith('-') ? `unknown option '${word}'` : `${name}: unknown command '${word}'`,
    { remedy: meant ? `Did you mean ${meant}?` : `See \`${name} --help\`.` },
  );
}

function suggestVerb(
  verbs: readonly VerbEntry[],
  path: readonly string[],
  word: string,
): string | undefined {
  const here = verbs.filter((entry) => startsWith(entry.path, path));
  const nearest = closest(word, new Set(here.map((entry) => entry.path[path.length]!)));
  if (nearest) return fullName([...path, nearest]);
  const elsewhere = verbs.find((entry) => entry.path.at(-1) === word);
  return elsewhere && fullName(elsewhere.path);
}

function hasFlag(argv: readonly string[], flag: string): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end === -1 ? undefined : end).includes(flag);
}

function printResult(io: Io, json: boolean, data: object, text: string): number {
  if (json) writeDocument(io, data);
  else io.stdout.write(text);
  return 0;
}

function writeDocument(io: Io, data: unknown): void {
  io.stdout.write(`${JSON.stringify(data, null, 2)}\n`);
}

/** Writes one JSON document per line until the reader closes the pipe. */
async function writeLinesOf(io: Io, documents: AsyncIterable<unknown>): Promise<void> {
  for await (const document of documents) {
    if (io.stdout.errored) return;
    writeLine(io, document);
  }
}

function writeLine({ stdout }: Io, document: unknown): void {
  stdout.write(`${JSON.stringify(document)}\n`);
}

async function reportFailure(
  thrown: unknown,
  json: false | 'document' | 'lines',
  color: Settings['color'],
  io: Io,
  options: Options | undefined,
): Promise<number> {
  const error = toServiceError(thrown);
  if (json) {
    const { code, reason = null, message, remedy = null, problems } = error;
    const document = { error: { code, reason, message, remedy, problems } };
    if (json === 'lines') writeLine(io, document);
    else writeDocument(io, document);
  } else {
    await writeError(nameOptions(error, options), color, io);
  }
  if (error !== thrown && error.code === 'failure') {
    writeLines(io.stderr, printable(String(thrown instanceof Error ? thrown.stack : thrown)));
  }
  return error.exitCode;
}

/** Returns expected errors as they are; any other error is reported as a bug. */
function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  // @inquirer throws this on Ctrl-C.
  if (thrown instanceof Error && thrown.name === 'ExitPromptError') {
    return new ServiceError('interrupted', 'interrupted', { cause: thrown });
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ServiceError('failure', message, {
    remedy: `This is a bug in service-local ${packageVersion()}: please report it with the stack trace on stderr.`,
    cause: thrown,
  });
}

/** Writes `error CODE: message`, then the problems with their locations, then the remedy. */
async function writeError(
  error: Pick<ServiceError, 'code' | 'message' | 'problems' | 'remedy'>,
  color: Settings['color'],
  io: Io,
): Promise<void> {
  const { red, dim } = await makeStyle(wantsColor(color, io.env, io.stderr));
  const lines = [
    `${red(`error ${error.code}:`)} ${printable(error.message)}`,
    ...error.problems.map((problem) => `  ${formatProblem(problem)}`),
    ...(error.remedy === undefined ? [] : [`${dim('→')} ${printable(error.remedy)}`]),
  ];
  writeLines(io.stderr, lines.join('\n'));
}

/** Ignores EPIPE: a reader such as `head` closes the pipe early. */
function ignoreBrokenPipe(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}
