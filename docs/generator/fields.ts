import { code, literal, prose } from './markdown.ts';

/** The parts of a JSON Schema that zod writes. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly default?: unknown;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxLength?: number;
}

/** Renders a reference to a component as a link. */
type Link = (name: string) => string;

/** A nested list with a line for each field of an object. */
export function fieldList(schema: JsonSchema, link: Link, depth = 0): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const notes = [
      typeOf(field, link),
      ...(schema.required?.includes(name) ? ['required'] : []),
      ...defaultOf(field),
    ];
    const description = descriptionOf(field);
    const indent = '  '.repeat(depth);
    return [
      `${indent}- ${code(name)} (${notes.join(', ')})${description && `: ${prose(description)}`}`,
      ...nestedFields(field, link, depth + 1),
    ];
  });
}

/** The fields below a value: of the object, of each element, or of each alternative. */
export function nestedFields(schema: JsonSchema, link: Link, depth = 0): string[] {
  if (isUnlimited(schema)) return [];
  if (schema.properties) return fieldList(schema, link, depth);
  const element = schema.items ?? mapValue(schema);
  if (element) return nestedFields(element, link, depth);
  const alternatives = alternativesOf(schema).filter((one) => hasFields(one) && !isUnlimited(one));
  return alternatives.flatMap((alternative) => {
    const [first] = Object.entries(alternative.properties ?? {});
    if (alternatives.length === 1 || first?.[1].const === undefined) {
      return nestedFields(alternative, link, depth);
    }
    const { [first[0]]: _, ...properties } = alternative.properties!;
    const title = `${code(first[0])}: ${literal(first[1].const)}`;
    const description = alternative.description ? `: ${prose(alternative.description)}` : '';
    return [
      `${'  '.repeat(depth)}- ${title}${description}`,
      ...fieldList({ ...alternative, properties }, link, depth + 1),
    ];
  });
}

function hasFields(schema: JsonSchema): boolean {
  return schema.properties !== undefined || alternativesOf(schema).some(hasFields);
}

/** The alternative `{unlimited: why}` that limits have. */
function isUnlimited({ properties = {} }: JsonSchema): boolean {
  return Object.keys(properties).join() === 'unlimited';
}

function alternativesOf({ anyOf = [], oneOf = [], type, properties }: JsonSchema): JsonSchema[] {
  // Beside `properties`, alternatives only say which fields are required together.
  if (properties !== undefined || type === 'object') return [];
  return [...anyOf, ...oneOf].flatMap((one) =>
    one.type === undefined && (one.anyOf ?? one.oneOf) !== undefined && !one.properties
      ? alternativesOf(one)
      : [one],
  );
}

function mapValue({ additionalProperties }: JsonSchema): JsonSchema | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

function descriptionOf(schema: JsonSchema): string {
  const own = schema.description ?? schema.allOf?.find((part) => part.description)?.description;
  return own?.replaceAll(/\s*\n\s*-\s*/g, ' ').replaceAll(/\s+/g, ' ') ?? '';
}

function defaultOf({ default: preset }: JsonSchema): string[] {
  return preset === undefined ? [] : [`default ${code(JSON.stringify(preset))}`];
}

/** The type as a phrase: `whole number from 1 to 500`. */
export function typeOf(schema: JsonSchema, link: Link): string {
  if (schema.$ref) return link(schema.$ref.split('/').at(-1)!);
  const [first] = schema.allOf ?? [];
  if (first) return typeOf(first, link);
  if ('const' in schema) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' \\| ');
  const alternatives = alternativesOf(schema);
  if (alternatives.length > 0) {
    const kinds = alternatives.map((one) => typeOf(one, link));
    return [...new Set(kinds)].join(' or ');
  }
  const { type } = schema;
  if (typeof type !== 'string') {
    return type?.map((one) => typeOf({ ...schema, type: one }, link)).join(' or ') ?? 'any value';
  }
  switch (type) {
    case 'integer':
      return `whole number${rangeOf(schema)}`;
    case 'number':
      return `number${rangeOf(schema)}`;
    case 'array':
      return `list of ${typeOf(schema.items ?? {}, link)}`;
    case 'object': {
      const value = mapValue(schema);
      if (isUnlimited(schema)) return code('{unlimited: why}');
      return value ? `map of names to ${typeOf(value, link)}` : 'object';
    }
    case 'string':
      return schema.format === 'date-time' ? 'time' : 'text';
    default:
      return type;
  }
}

function rangeOf(schema: JsonSchema): string {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema;
  const least =
    exclusiveMinimum !== undefined
      ? ` above ${exclusiveMinimum}`
      : minimum !== undefined
        ? ` from ${minimum}`
        : '';
  const isLimited = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  const most =
    exclusiveMaximum !== undefined
      ? ` below ${exclusiveMaximum}`
      : isLimited
        ? ` to ${maximum}`
        : '';
  return `${minimum === -Number.MAX_SAFE_INTEGER ? '' : least}${most}`;
}
