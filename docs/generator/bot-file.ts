import { botJsonSchema } from '../../src/bots/json-schema.ts';
import { fieldList, nestedFields, typeOf, type JsonSchema } from './fields.ts';
import { anchor, blocks, bullets, code, sentence } from './markdown.ts';
import type { Page } from './page.ts';

/** Every field of a bot file. */
export function botFilePage(): Page {
  const schema = botJsonSchema() as JsonSchema;
  const { metadata, spec, ...top } = schema.properties!;
  const text = blocks(
    '# Bot file',
    'A bot is one YAML or JSON file. `service-local schema` prints the same as JSON Schema, and `service-local validate bot.yaml` checks a file. Relative paths are relative to the file. Amounts of money are decimal numbers in quotes.',
    '## Top level',
    fieldList({ ...schema, properties: top }, code).join('\n'),
    '## metadata',
    fieldList(metadata!, code).join('\n'),
    '## spec',
    'The parts of `spec`. Parts that are not marked as required can be omitted.',
    bullets(Object.keys(spec!.properties!).map((name) => partLine(spec!, name))),
    ...Object.entries(spec!.properties!)
      .filter(([name]) => name !== 'kind')
      .map(([name, part]) => section(name, part)),
  );
  return { path: 'bot-file.md', text };
}

function partLine(spec: JsonSchema, name: string): string {
  const required = spec.required?.includes(name) ? ' (required)' : '';
  const part = spec.properties![name]!;
  if (name === 'kind') return `${code(name)}${required}: ${typeOf(part, code)}`;
  return `[${code(name)}](#${anchor(`spec.${name}`)})${required}`;
}

function section(name: string, part: JsonSchema): string {
  return blocks(
    `## spec.${name}`,
    part.description && sentence(part.description),
    part.items && 'A list of objects with these fields:',
    nestedFields(part, code).join('\n'),
  );
}
