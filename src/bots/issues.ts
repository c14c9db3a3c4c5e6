import { z } from 'zod';
import { closest } from '../base/closest.ts';
import type { Problem } from '../base/errors.ts';
import { similarTimeframe } from '../market/timeframe.ts';
import type { CalendarName } from '../market/trading-calendar.ts';
import { optional, type Path, type SourceDocument } from './document.ts';
import { SPECIAL_PROBLEMS } from './field-types.ts';

type Issue = z.core.$ZodIssue;

/** Converts zod issues to problems with plain messages and positions in the source text. */
export function problemsOfIssues(
  issues: readonly Issue[],
  schema: z.ZodType,
  document: SourceDocument,
): Problem[] {
  return issues.flatMap((issue) => problemsOfIssue(issue, schema, document));
}

function problemsOfIssue(issue: Issue, schema: z.ZodType, document: SourceDocument): Problem[] {
  const { path } = issue;
  const value = valueAt(document.value, path);

  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownField(key, path, schema, document));
  }
  if (issue.code === 'invalid_key') {
    const message = `the name ${issue.issues.map(expectation).join(' and ')}`;
    return [document.problem(path, { code: 'invalid_value', message }, 'key')];
  }
  if (issue.code === 'invalid_union') {
    const branch = issue.discriminator === undefined && likeliestBranch(issue.errors);
    if (branch) {
      return branch.flatMap((inner) =>
        problemsOfIssue({ ...inner, path: [...path, ...inner.path] }, schema, document),
      );
    }
  }
  if (value === undefined) {
    const name = String(path.at(-1) ?? '');
    const message = `missing field ${name}: ${expectation(issue)}`;
    return [document.problem(path, { code: 'missing_field', message })];
  }

  const written = document.written(path);
  const special = schemasAt(schema, path, document.value)
    .map((candidate) => SPECIAL_PROBLEMS.get(candidate)?.of(value))
    .find((what) => what !== undefined);
  const general = {
    code: isWrongType(issue) ? 'invalid_type' : 'invalid_value',
    message: hidesValue(issue, value)
      ? expectation(issue)
      : `${expectation(issue)}, not ${describe(value)}`,
  };
  const suggestion = suggestionFor(issue, value, written);
  return [document.problem(path, { ...(special ?? general), ...optional(suggestion) })];
}

function unknownField(
  key: string,
  parent: Path,
  schema: z.ZodType,
  document: SourceDocument,
): Problem {
  const known = schemasAt(schema, parent, document.value).flatMap((candidate) =>
    candidate instanceof z.ZodObject ? Object.keys(candidate.shape) : [],
  );
  const what = {
    code: 'unknown_field',
    message: `unknown field; expected one of ${known.join(', ')}`,
    ...optional(closest(key, known)),
  };
  return document.problem([...parent, key], what, 'key');
}

/**
 * Issues of the alternative that the author most likely meant: the one that accepts this type of
 * value and has the fewest issues inside. Undefined if no alternative accepts the type.
 */
function likeliestBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  return branches
    .filter((issues) => issues.every((issue) => issue.path.length > 0 || !isWrongKind(issue)))
    .toSorted((a, b) => a.length - b.length)[0];
}

/** Whether the value adds nothing to a message: it is empty, or only its size or contents are wrong. */
function hidesValue({ code }: Issue, value: unknown): boolean {
  const isPartWrong = code === 'custom' || code === 'too_big' || code === 'too_small';
  return value === '' || (isPartWrong && typeof value === 'object');
}

function isWrongKind(issue: Issue): boolean {
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function isWrongType(issue: Issue): boolean {
  if (issue.code === 'invalid_union') {
    return issue.discriminator === undefined && issue.errors.flat().every(isWrongType);
  }
  return issue.code === 'invalid_type';
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

/** Requirement of the schema, as a phrase that starts with "must". */
function expectation(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${NOUNS[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${anyOf(issue.values)}`;
    case 'invalid_union': {
      if (issue.discriminator !== undefined && 'options' in issue) {
        return `must be ${anyOf(issue.options ?? [])}`;
      }
      const kinds = issue.errors.flat().map((inner) => expectation(inner).replace(/^must be /, ''));
      return `must be ${[...new Set(kinds)].join(' or ')}`;
    }
    case 'too_small':
      return bound(issue.origin, issue.inclusive ? 'at least' : 'above', issue.minimum);
    case 'too_big':
      return bound(issue.origin, issue.inclusive ? 'at most' : 'below', issue.maximum);
    case 'invalid_format':
    case 'custom':
    case 'not_multiple_of':
    case 'invalid_key':
    case 'invalid_element':
    case 'unrecognized_keys':
      return issue.message;
    default:
      return issue satisfies never;
  }
}

function bound(origin: string, relation: string, limit: number | bigint): string {
  if (origin === 'string' && limit === 1) return 'must not be empty';
  if (origin === 'string') return `must have ${relation} ${limit} characters`;
  if (origin === 'array') return `must have ${relation} ${limit} ${limit === 1 ? 'item' : 'items'}`;
  return `must be ${relation} ${limit}`;
}

function anyOf(values: readonly unknown[]): string {
  if (values.length === 1) return String(values[0]);
  const listed = values.length > 20 ? [...values.slice(0, 10), '…'] : values;
  return `one of ${listed.join(', ')}`;
}

function describe(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') {
    return JSON.stringify(value.length > 60 ? `${value.slice(0, 59)}…` : value);
  }
  if (value === null) return 'empty';
  return Array.isArray(value) ? 'a list' : 'a map';
}

/** Suggestions for models that need parameters but were given as a single word. */
const MODELS: Readonly<Record<string, string>> = {
  'account: margin': '{model: margin, initial: 0.5, maintenance: 0.25}',
  'fees: percent': '{model: percent, rate: "0.001"}',
  'fees: per_share': '{model: per_share, rate: "0.005"}',
  'slippage: basis_points': '{model: basis_points, bps: 5}',
  'slippage: volume_share': '{model: volume_share, impact: 0.1}',
};

/** Calendars by the common name of their exchange. */
const CALENDARS: Readonly<Record<string, CalendarName>> = {
  NYSE: 'XNYS',
  NASDAQ: 'XNAS',
  LSE: 'XLON',
  XETRA: 'XETR',
  TSE: 'XTKS',
};

function suggestionFor(
  issue: Issue,
  value: unknown,
  written: string | undefined,
): string | undefined {
  const expected = expectedTypes(issue);
  if (typeof value !== 'string') {
    return expected.includes('string') && typeof value !== 'object' ? `"${written}"` : undefined;
  }
  if (expected.includes('array')) return `[${value}]`;
  const model = issue.path[1] === 'engine' && MODELS[`${String(issue.path[2])}: ${value}`];
  if (model) return model;
  const isNumber = expected.some((type) => type === 'number' || type === 'int');
  if (isNumber && /^-?\d+(\.\d+)?$/.test(value)) return value;
  const known = choices(issue).map(String);
  const meant = [similarTimeframe(value), CALENDARS[value.toUpperCase()]];
  return known.find((name) => meant.some((one) => one === name)) ?? closest(value, known);
}

function expectedTypes(issue: Issue): readonly string[] {
  if (issue.code === 'invalid_union') return issue.errors.flat().flatMap(expectedTypes);
  return issue.code === 'invalid_type' ? [issue.expected] : [];
}

function choices(issue: Issue): readonly unknown[] {
  if (issue.code === 'invalid_value') return issue.values;
  if (issue.code !== 'invalid_union') return [];
  return 'options' in issue && issue.options ? issue.options : issue.errors.flat().flatMap(choices);
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, step) => {
    const isContainer = typeof inner === 'object' && inner !== null && Object.hasOwn(inner, step);
    return isContainer ? (inner as Record<PropertyKey, unknown>)[step] : undefined;
  }, value);
}

/** Schemas that apply at `path` of `value`: several if a union allows several. */
function schemasAt(schema: z.core.$ZodType, path: Path, value: unknown): z.core.$ZodType[] {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  ) {
    return schemasAt(schema.unwrap(), path, value);
  }
  if (schema instanceof z.ZodUnion) {
    return alternatives(schema, value).flatMap((option) => schemasAt(option, path, value));
  }
  const [step, ...rest] = path;
  if (step === undefined) return [schema];
  const child = childSchema(schema, step);
  return child === undefined ? [] : schemasAt(child, rest, valueAt(value, [step]));
}

function childSchema(schema: z.core.$ZodType, step: PropertyKey): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) return schema.shape[String(step)];
  if (schema instanceof z.ZodArray) return schema.element;
  return schema instanceof z.ZodRecord ? schema.valueType : undefined;
}

/** Options of a union that match the discriminator of `value`; all if none matches. */
function alternatives(union: z.ZodUnion, value: unknown): readonly z.core.$ZodType[] {
  const { options } = union;
  if (!(union instanceof z.ZodDiscriminatedUnion)) return options;
  const { discriminator } = union.def;
  const tag = valueAt(value, [discriminator]);
  const matching = options.filter(
    (option) =>
      option instanceof z.ZodObject && option.shape[discriminator]?.safeParse(tag).success,
  );
  return matching.length > 0 ? matching : options;
}
