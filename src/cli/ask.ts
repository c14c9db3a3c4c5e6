import { text } from 'node:stream/consumers';
import { ServiceError } from '../base/errors.ts';
import type { Context, Io } from './verb.ts';

type Person = Pick<Context, 'interactive' | 'io'>;

/**
 * Prompts for a value that `option` would have given.
 * @throws ServiceError `usage` if prompting is not possible
 */
export async function ask(person: Person, message: string, option: string): Promise<string> {
  requireInteractive(person, option);
  const { input } = await import('@inquirer/prompts');
  return promptOn(person.io, (terminal) => input({ message, required: true }, terminal));
}

export const PASSWORD_STDIN_OPTION = {
  description: 'read the password from standard input instead of prompting',
} as const;

/**
 * Reads a password from standard input, without its final line feed, or prompts for it.
 * @throws ServiceError `usage` if standard input is empty or prompting is not possible
 */
export async function readPassword(
  person: Person,
  passwordStdin: boolean,
  message: string,
): Promise<string> {
  if (passwordStdin) {
    const given = (await text(person.io.stdin)).replace(/\r?\n$/, '');
    if (given !== '') return given;
    throw new ServiceError('usage', '--password-stdin: standard input is empty', {
      remedy: 'Redirect the password from a file, or omit --password-stdin to be prompted.',
    });
  }
  requireInteractive(person, '--password-stdin');
  const { password } = await import('@inquirer/prompts');
  return promptOn(person.io, (terminal) => password({ message, mask: true }, terminal));
}

/** @throws ServiceError `usage` with the options that would replace prompts, if prompting is not possible */
export function requireInteractive({ interactive }: Person, ...options: string[]): void {
  if (interactive) return;
  const listed = options.join(' and ');
  const verb = options.length === 1 ? 'is' : 'are';
  throw new ServiceError('usage', `${listed} ${verb} required when prompting is not possible`, {
    remedy: `Pass ${listed}, or run the command on a terminal without --json and --no-input.`,
  });
}

/** Streams of a prompt, which is written to stderr, and a signal that ends the prompt. */
export interface Terminal {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly signal: AbortSignal;
}

/**
 * Runs a prompt of @inquirer and ends it on Ctrl-D, after which it would wait forever.
 * @throws ServiceError `interrupted` if the input ends before the answer
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
    throw new ServiceError('interrupted', 'standard input ended before an answer was given', {
      cause: error,
    });
  } finally {
    input.off('pause', end);
  }
}
