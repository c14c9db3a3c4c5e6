/** Files that people write for this program, other than bots: YAML or JSON, and never credentials. */
import { readFileSync } from 'node:fs';
import { parse, YAMLParseError } from 'yaml';
import { z } from 'zod';
import { isSystemError, type Problem, type ServiceError } from './errors.ts';

export interface YamlFileRules<S extends z.ZodType> {
  readonly schema: S;
  /** Makes the error that tells the problems. */
  readonly refuse: (problems: readonly Problem[]) => ServiceError;
  /** What to say to whoever wrote an unknown field that is called like a credential. */
  readonly ofSecrets?: string;
}

const SECRETS = /token|password|secret|certificate|key|credential|auth/i;

/**
 * What is in the file; undefined where there is none. As it may hold secrets by mistake, neither its
 * lines nor its values get into what is thrown.
 *
 * @throws what `refuse` makes of all problems.
 */
export function readYamlFile<S extends z.ZodType>(
  file: string,
  { schema, refuse, ofSecrets }: YamlFileRules<S>,
): z.output<S> | undefined {
  const problem = (message: string, pointer?: string): Problem => ({
    code: 'invalid_setting',
    file,
    message,
    ...(pointer !== undefined && { pointer }),
  });
  let value: unknown;
  try {
    // The warnings of the parser would show lines of the file.
    value = parse(readFileSync(file, 'utf8'), { logLevel: 'error' });
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw refuse([
      problem(isSystemError(error) ? `cannot be read (${error.code})` : notYaml(error)),
    ]);
  }
  const { success, data, error } = schema.safeParse(value ?? {});
  if (success) return data;
  throw refuse(
    error.issues.map((issue) => {
      const isSecret =
        issue.code === 'unrecognized_keys' && issue.keys.some((key) => SECRETS.test(key));
      const hint = isSecret && ofSecrets !== undefined ? `; ${ofSecrets}` : '';
      const where = issue.path.join('.') || 'the file';
      const pointer = issue.path.map((part) => `/${String(part)}`).join('');
      return problem(`${where}: ${textOf(issue)}${hint}`, pointer);
    }),
  );
}

/** An address with nothing in it that could be a credential. */
export const plainUrl = z.url({ protocol: /^https?$/ }).refine(
  (text) => {
    const url = URL.parse(text);
    return url !== null && !(url.username || url.password || url.search || url.hash);
  },
  { message: 'must have no user, password, query or fragment' },
);

function notYaml(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return 'is no YAML: an alias in it leads nowhere';
  const [start] = error.linePos ?? [];
  const where = start === undefined ? '' : ` at line ${start.line}, column ${start.col}`;
  return `is no YAML${where}: ${error.code}`;
}

function textOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const { keys } = issue;
    return `unknown field${keys.length === 1 ? '' : 's'} ${keys.map((key) => `"${key}"`).join(', ')}`;
  }
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(' or ')}`;
  if (issue.code === 'invalid_union') {
    const all = new Set(issue.errors.flat().map((inner) => textOf(inner)));
    return [...all].join(', or ') || issue.message;
  }
  // Zod begins its own messages with what kind of fault it is: `Too small: expected …`.
  const message = issue.message.replace(/^[A-Z][a-z ]*: /, '');
  return message.replace(/^expected (.*), received undefined$/, 'is missing; expected $1');
}
