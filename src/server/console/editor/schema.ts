import { ITEM } from './yaml-place.ts';

/** The parts of JSON Schema that the schema of bots uses. */
export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly const?: string | number | boolean;
  readonly enum?: readonly (string | number | boolean)[];
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

/**
 * The schemas that a value at `path` may have. Alternatives that contradict scalars of the text are
 * left out, such as the parameters of other strategies.
 */
export function schemasAt(
  root: Schema,
  path: readonly string[],
  scalars: ReadonlyMap<string, string>,
): readonly Schema[] {
  let found = alternatives(root, [], scalars);
  for (const [index, name] of path.entries()) {
    const here = path.slice(0, index + 1);
    found = found.flatMap((schema) => {
      const next = stepInto(schema, name);
      return next === undefined ? [] : alternatives(next, here, scalars);
    });
  }
  return found;
}

function stepInto({ items, properties, additionalProperties }: Schema, name: string) {
  if (name === ITEM) return items;
  const rest = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  return properties && Object.hasOwn(properties, name) ? properties[name] : rest;
}

function alternatives(
  schema: Schema,
  path: readonly string[],
  scalars: ReadonlyMap<string, string>,
): readonly Schema[] {
  const inner = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])];
  if (inner.length === 0) return [schema];
  const all = inner.flatMap((one) => alternatives(one, path, scalars));
  const fitting = all.filter((one) => !contradicts(one, path, scalars));
  const { description } = schema;
  const own = schema.properties === undefined ? [] : [schema];
  const described = (fitting.length > 0 ? fitting : all).map((one) =>
    description === undefined ? one : { description, ...one },
  );
  return [...own, ...described];
}

/** Whether a constant of the schema, such as the name of a strategy, differs from the text. */
function contradicts(
  { properties = {} }: Schema,
  path: readonly string[],
  scalars: ReadonlyMap<string, string>,
): boolean {
  return Object.entries(properties).some(([name, { const: constant }]) => {
    const written = scalars.get([...path, name].join('/'));
    return (
      constant !== undefined &&
      written !== undefined &&
      written !== '' &&
      written !== String(constant)
    );
  });
}

export function valuesOf({
  const: constant,
  enum: choices,
  type,
}: Schema): readonly (string | number | boolean)[] {
  if (constant !== undefined) return [constant];
  return choices ?? (type === 'boolean' ? [true, false] : []);
}
