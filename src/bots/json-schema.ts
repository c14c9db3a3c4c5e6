import { z } from 'zod';
import type { Param } from '../engine/params.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import { botSpecSchema } from './spec.ts';

type JsonSchema = Record<string, unknown>;

/**
 * JSON Schema (draft 2020-12) of the spec, for completion and checks in editors. `validate` also
 * checks what a schema cannot express, such as whether files exist and gates can fail.
 */
export function botJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(botSpecSchema, {
    io: 'input',
    override({ path, jsonSchema }) {
      if (path.join('/') === 'properties/spec/properties/strategy') {
        describeStrategies(jsonSchema as JsonSchema);
      }
    },
  });
  const { $schema, ...rest } = schema;
  return { $schema, $id: 'urn:service-local:bot:v1', title: 'A bot of service-local', ...rest };
}

/** Adds an alternative for each built-in strategy, with its parameters, and one for modules. */
function describeStrategies(schema: JsonSchema): void {
  const { module, params } = schema['properties'] as JsonSchema;
  const own = alternative({ module, params }, 'module');
  const alternatives = [...BUILT_IN_STRATEGIES.values()].map(builtIn);
  for (const key of Object.keys(schema)) delete schema[key];
  schema['oneOf'] = [...alternatives, { description: 'A strategy of your own.', ...own }];
}

function builtIn({ name, description, params }: Strategy): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(params).map(([key, param]) => [key, paramSchema(param)]),
  );
  const schema = alternative(
    { name: { const: name }, params: { type: 'object', properties, additionalProperties: false } },
    'name',
  );
  return { description, ...schema };
}

function alternative(properties: JsonSchema, required: string): JsonSchema {
  return { type: 'object', properties, required: [required], additionalProperties: false };
}

function paramSchema(param: Param): JsonSchema {
  const common = {
    default: param.default,
    ...(param.description === undefined ? {} : { description: param.description }),
  };
  switch (param.kind) {
    case 'integer':
    case 'number':
      return {
        type: param.kind,
        ...(param.min === undefined ? {} : { minimum: param.min }),
        ...(param.max === undefined ? {} : { maximum: param.max }),
        ...common,
      };
    case 'choice':
      return { enum: [...param.choices], ...common };
    case 'flag':
      return { type: 'boolean', ...common };
    default:
      return param satisfies never;
  }
}
