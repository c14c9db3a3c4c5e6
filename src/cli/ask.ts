import { text } from 'node:stream/consumers';
import { ServiceError } from '../base/errors.ts';
import type { Context, Io } from './verb.ts';

type Person = Pick<Context, 'interactive' | 'io'>;

/**
 * Asks a person for what an option would have given.
 * @throws ServiceError `usage` where nobody can be asked
 */
export async function ask(person: Person, message: string, option: string): Promise<string> {
  requireInteractive(person, option);
  const { input } = await import('@inquirer/prompts');
  return promptOn(person.io, (terminal) => input({ message, required: true }, terminal));
}

/** The option of verbs that take a password from a script. */
export const PASSWORD_STDIN_OPTION = {
  description: 'read the password from standard input, and ask nothing',
} as const;

/**
 * A password: from standard input, without the line feed at its end, or asked of a person.
 * @throws ServiceError `usage` where nobody can be asked, and for an empty standard input
 */
export async function readPassword(
  person: Person,
  passwordStdin: boolean,
  message: string,
  validate: (password: string) => string | true = () => true,
): Promise<string> {
  if (passwordStdin) {
    const given = (await text(person.io.stdin)).replace(/\r?\n$/, '');
    if (given !== '') return given;
    throw new ServiceError('usage', '--password-stdin: there is no password on standard input', {
      remedy: 'Redirect it from a file, or omit --password-stdin to be asked.',
    });
  }
  requireInteractive(person, '--password-stdin');
  const { password } = await import('@inquirer/prompts');
  return promptOn(person.io, (terminal) => password({ message, mask: true, validate }, terminal));
}

function requireInteractive({ interactive }: Person, option: string): void {
  if (interactive) return;
  throw new ServiceError('usage', `${option} is missing, and there is nobody to ask`, {
    remedy: `Give ${option}, or run it on a terminal without --json and --no-input.`,
  });
}

/** Streams of a question, which goes to stderr since it is no data, and a signal that ends it. */
export interface Terminal {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly signal: AbortSignal;
}

/**
 * Asks with a prompt of @inquirer, which would wait forever after Ctrl-D.
 * @throws ServiceError `interrupted` if the input ends before the answer.
 */
export async function promptOn<T>(
  { stdin: input, stderr: output }: Pick<Io, 'stdin' | 'stderr'>,
  prompt: (terminal: Terminal) => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  // The readline interface of the prompt pauses its input when it closes.
  const end = (): void => ended.abort();
  input.once('pause', end);
  try {
    return await prompt({ input, output, signal: ended.signal });
  } catch (error) {
    if (!ended.signal.aborted || !(error instanceof Error) || error.name !== 'AbortPromptError') {
      throw error;
    }
    throw new ServiceError('interrupted', 'the input ended before an answer', { cause: error });
  } finally {
    input.off('pause', end);
  }
}
