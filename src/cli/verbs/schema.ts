import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  summary: 'print the JSON Schema of bot files',
  description:
    'Prints the JSON Schema (draft 2020-12) of bot files, with the parameters of every built-in ' +
    'strategy. Editors use it for completion and checks in YAML files that begin with ' +
    '`# yaml-language-server: $schema=bot.schema.json`.',
  examples: ['schema > bot.schema.json'],
  async run() {
    const { botJsonSchema } = await import('../../bots/json-schema.ts');
    const schema = botJsonSchema();
    return { data: schema, show: (out) => out.line(JSON.stringify(schema, null, 2)) };
  },
});
