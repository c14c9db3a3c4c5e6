import { text } from 'node:stream/consumers';
import { ServiceError } from '../errors.ts';
import type { Context } from './verb.ts';

type Person = Pick<Context, 'interactive' | 'io'>;

/**
 * Asks a person for what an option would have given.
 * @throws ServiceError `usage` where nobody can be asked
 */
export async function ask(person: Person, message: string, option: string): Promise<string> {
  refuseToAskNobody(person, option);
  const { input } = await import('@inquirer/prompts');
  return input({ message, required: true }, terminalOf(person));
}

/** The option of verbs that take a password from a script. */
export const PASSWORD_STDIN_OPTION = {
  description: 'read the password from standard input, and ask nothing',
} as const;

/**
 * A password: from standard input, without the line feed at its end, or asked of a person.
 * @throws ServiceError `usage` where nobody can be asked
 */
export async function givenPassword(
  person: Person,
  passwordStdin: boolean,
  message: string,
  validate: (password: string) => string | true = () => true,
): Promise<string> {
  if (passwordStdin) return (await text(person.io.stdin)).replace(/\r?\n$/, '');
  refuseToAskNobody(person, '--password-stdin');
  const { password } = await import('@inquirer/prompts');
  return password({ message, mask: true, validate }, terminalOf(person));
}

function refuseToAskNobody({ interactive }: Person, option: string): void {
  if (interactive) return;
  throw new ServiceError('usage', `${option} is missing, and there is nobody to ask`, {
    remedy: `Give ${option}, or run it on a terminal without --json and --no-input.`,
  });
}

/** Questions are no data: they go to stderr. */
function terminalOf({ io }: Person) {
  return { input: io.stdin, output: io.stderr };
}
