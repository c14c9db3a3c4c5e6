/** Parts of a document of which nothing is known yet. */

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** None where it is no map. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** Empty where it is no list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
