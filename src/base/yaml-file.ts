/** YAML and JSON files that people write, other than bots. They must not contain credentials. */
import { readFileSync } from 'node:fs';
import { parse, YAMLParseError } from 'yaml';
import { z } from 'zod';
import { type Problem, type ServiceError } from './errors.ts';
import { isSystemError } from './system-errors.ts';

export interface YamlFileRules<S extends z.ZodType> {
  readonly schema: S;
  /** Creates the error for the problems. */
  readonly refuse: (problems: readonly Problem[]) => ServiceError;
  /** Hint for an unknown field whose name suggests a credential. */
  readonly secretsHint?: string;
}

const SECRETS = /token|password|secret|certificate|key|credential|auth/i;

/**
 * Returns the content of the file; undefined if it does not exist. Errors contain neither lines nor
 * values of the file, since it may contain secrets by mistake.
 *
 * @throws the error that `refuse` creates.
 */
export function readYamlFile<S extends z.ZodType>(
  file: string,
  { schema, refuse, secretsHint }: YamlFileRules<S>,
): z.output<S> | undefined {
  const problem = (message: string, pointer?: string): Problem => ({
    code: 'invalid_setting',
    file,
    message,
    ...(pointer !== undefined && { pointer }),
  });
  let value: unknown;
  try {
    // Warnings of the parser would show lines of the file.
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
      const hint = isSecret && secretsHint !== undefined ? `; ${secretsHint}` : '';
      const where = issue.path.join('.') || 'the file';
      const pointer = issue.path.map((part) => `/${String(part)}`).join('');
      return problem(`${where}: ${textOf(issue)}${hint}`, pointer);
    }),
  );
}

/** An http or https URL without parts that could contain a credential. */
export const plainUrl = z.url({ protocol: /^https?$/ }).refine(
  (text) => {
    const url = URL.parse(text);
    return url !== null && !(url.username || url.password || url.search || url.hash);
  },
  { message: 'must have no user, password, query or fragment' },
);

function notYaml(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return 'is not valid YAML: an alias has no anchor';
  const [start] = error.linePos ?? [];
  const where = start === undefined ? '' : ` at line ${start.line}, column ${start.col}`;
  return `is not valid YAML${where}: ${error.code}`;
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
  // Zod's messages start with the kind of fault: `Too small: expected …`.
  const message = issue.message.replace(/^[A-Z][a-z ]*: /, '');
  return message.replace(/^expected (.*), received undefined$/, 'is missing; expected $1');
}
