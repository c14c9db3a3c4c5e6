import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { schemasAt, valuesOf, type Schema } from './schema.ts';
import { placeAt, scalarsIn, type Place } from './yaml-place.ts';

const WORD = /^[\w.:/-]*$/;

/** Completes keys and values of a bot file. */
export function completeSpec(
  schema: Schema,
  datasets: readonly string[],
): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const { state, pos, explicit } = context;
    const text = state.doc.toString();
    const place = placeAt(text, pos);
    const word = context.matchBefore(/[\w.:/-]+/);
    const from = word?.from ?? pos;
    if (from === pos && !explicit && !place.isValue) return null;
    const options = optionsAt(schema, text, { place, datasets });
    // With a complete word, Enter starts the next line.
    const isComplete = !explicit && options.some(({ label }) => label === word?.text);
    if (options.length === 0 || isComplete) return null;
    return { from, options: [...options], validFor: WORD };
  };
}

/** @param datasets names of datasets in the catalogue. */
export function optionsAt(
  root: Schema,
  text: string,
  { place, datasets }: { readonly place: Place; readonly datasets: readonly string[] },
): readonly Completion[] {
  const scalars = scalarsIn(text);
  const schemas = schemasAt(root, place.path, scalars);
  const values = schemas.flatMap((schema) =>
    valuesOf(schema).map((one) => valueOption(one, schema)),
  );
  const data = isData(place.path) ? datasets.map((name) => dataOption(name)) : [];
  const keys = place.isValue ? [] : schemas.flatMap((schema) => keyOptions(schema, place));
  const used = new Set(scalars.keys());
  const unused = keys.filter(({ label }) => !isUsed(used, [...place.path, label].join('/')));
  return withoutRepeats([...unused, ...values, ...data]);
}

function keyOptions({ properties = {}, required = [] }: Schema, place: Place): Completion[] {
  return Object.entries(properties).map(([name, schema]) => ({
    label: name,
    type: 'property',
    apply: keyText(name, schema, place),
    boost: required.includes(name) ? 1 : 0,
    ...detailOf(schema, required.includes(name)),
  }));
}

/** A map in block style continues in the next line. */
function keyText(name: string, { type }: Schema, { isFlow, indent }: Place): string {
  if (isFlow || type !== 'object') return `${name}: `;
  return `${name}:\n${' '.repeat(indent + 2)}`;
}

function detailOf(schema: Schema, isRequired: boolean): Omit<Completion, 'label'> {
  const { type, description, default: usual } = schema;
  const words = [
    type ?? '',
    isRequired ? 'required' : '',
    typeof usual === 'object' || usual === undefined ? '' : `default ${JSON.stringify(usual)}`,
  ];
  const detail = words.filter((one) => one !== '').join(', ');
  return {
    ...(detail !== '' && { detail }),
    ...(description !== undefined && { info: description }),
  };
}

function valueOption(value: string | number | boolean, { description }: Schema): Completion {
  const label = String(value);
  return { label, type: 'enum', ...(description !== undefined && { info: description }) };
}

function dataOption(name: string): Completion {
  return { label: `catalog://${name}`, type: 'constant', info: 'A dataset of this server.' };
}

function isData(path: readonly string[]): boolean {
  return /^spec\/data\/(source|sources\/[^/]+|benchmark)$/.test(path.join('/'));
}

function isUsed(used: ReadonlySet<string>, path: string): boolean {
  return used.has(path) || [...used].some((one) => one.startsWith(`${path}/`));
}

function withoutRepeats(options: readonly Completion[]): readonly Completion[] {
  return [...new Map(options.toReversed().map((one) => [one.label, one])).values()].toReversed();
}
