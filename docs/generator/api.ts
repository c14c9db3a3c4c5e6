import { readdirSync } from 'node:fs';
import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import { SECURITY_SCHEMES, TAGS } from '../../src/api/http.ts';
import { fieldList, typeOf, type JsonSchema } from './fields.ts';
import { anchor, blocks, bullets, code, literal, prose, sentence, table } from './markdown.ts';
import type { Page } from './page.ts';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body & { readonly description: string }>>;
  readonly 'x-license-feature'?: string;
  readonly 'x-narrowed-tokens'?: true;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

interface Body {
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

/** The paths and schemas of the server's OpenAPI document, without starting a server. */
export async function apiDocument(): Promise<Document> {
  const directory = new URL('../../src/api/', import.meta.url);
  const app = new OpenAPIHono();
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.ts'))) {
    const exported = (await import(new URL(file, directory).href)) as Record<string, unknown>;
    for (const value of Object.values(exported)) {
      if (isRoute(value)) app.openAPIRegistry.registerPath(value);
    }
  }
  const info = { title: 'service-local', version: '' };
  return app.getOpenAPI31Document({ openapi: '3.1.0', info }) as unknown as Document;
}

function isRoute(value: unknown): value is RouteConfig {
  return typeof value === 'object' && value !== null && 'operationId' in value;
}

/** One page for each tag, one with all schemas, and a list of all operations. */
export async function apiPages(): Promise<Page[]> {
  const { paths, components } = await apiDocument();
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const byTag = Map.groupBy(operations, ({ operation }) => operation.tags[0]!);
  return [
    { path: 'api/index.md', text: indexPage(operations) },
    ...Object.entries(TAGS).map(([tag, description]) => ({
      path: `api/${tag.toLowerCase()}.md`,
      text: blocks(
        `# API: ${tag}`,
        prose(description),
        ...(byTag.get(tag) ?? []).map(operationSection),
      ),
    })),
    { path: 'api/schemas.md', text: schemasPage(components.schemas) },
  ];
}

interface Located {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

function indexPage(operations: readonly Located[]): string {
  return blocks(
    '# HTTP API',
    'Every operation of the server. `/openapi.json` of a running server is the same as an OpenAPI 3.1 document. Times are in UTC (RFC 3339), and failures are `application/problem+json` with one of the [error codes](../errors.md).',
    '## Who may call',
    'Each operation names the callers that it accepts.',
    ...Object.entries(SECURITY_SCHEMES).map(([name, { description }]) =>
      blocks(`### ${name}`, prose(description)),
    ),
    '## All operations',
    table(
      ['operation', 'purpose'],
      operations.map(({ path, method, operation }) => [
        `[${method.toUpperCase()} ${path}](${operation.tags[0]!.toLowerCase()}.md#${anchor(operation.summary)})`,
        prose(operation.summary),
      ]),
    ),
  );
}

const linkToSchema = (name: string): string => `[${name}](schemas.md#${name.toLowerCase()})`;

function operationSection({ path, method, operation }: Located): string {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const statuses = Object.entries(responses);
  const isProblem = ({ content = {} }: Body): boolean => 'application/problem+json' in content;
  return blocks(
    `## ${summary}`,
    `${code(`${method.toUpperCase()} ${path}`)} (operation ${code(operationId)})`,
    description && prose(description),
    bullets([
      `Callers: ${callersOf(operation)}`,
      ...(operation['x-license-feature']
        ? [`License: the feature ${code(operation['x-license-feature'])}`]
        : []),
      ...(operation['x-narrowed-tokens'] ? ['Narrowed tokens: accepted'] : []),
    ]),
    parameters.length === 0
      ? undefined
      : blocks('Parameters:', bullets(parameters.map(parameterLine))),
    requestBody && blocks('Request body:', bodyOf(requestBody)),
    'Responses:',
    bullets([
      ...statuses
        .filter(([, response]) => !isProblem(response))
        .map(([status, response]) => responseLine(status, response)),
      ...statuses
        .filter(([, response]) => isProblem(response))
        .map(([status, response]) => `${status}: ${prose(response.description)}`),
    ]),
  );
}

function callersOf({ security }: Operation): string {
  if (security.length === 0) return 'anyone';
  return security
    .flatMap((one) => Object.entries(one))
    .map(([name, scopes]) =>
      scopes.length === 0
        ? `[${name}](index.md#${name})`
        : `[${name}](index.md#${name}) with the scope ${scopes.map(code).join(' and ')}`,
    )
    .join(', or ');
}

function parameterLine({ name, in: place, required, description, schema }: Parameter): string {
  const notes = [place, typeOf(schema, linkToSchema), ...(required ? ['required'] : [])];
  const text = description ?? schema.description;
  const preset = schema.default === undefined ? '' : `, default ${literal(schema.default)}`;
  return `${code(name)} (${notes.join(', ')}${preset})${text ? `: ${prose(text)}` : ''}`;
}

function bodyOf({ content = {} }: Body): string {
  return blocks(
    ...Object.entries(content).map(([type, { schema }]) => {
      const fields = fieldList(schema, linkToSchema, 1);
      return [`- ${code(type)}: ${typeOf(schema, linkToSchema)}`, ...fields].join('\n');
    }),
  );
}

function responseLine(
  status: string,
  { description, content = {} }: Operation['responses'][string],
): string {
  const [schema] = Object.values(content).map((body) => body.schema);
  const type = schema && typeOf(schema, linkToSchema);
  return `${status}: ${prose(description)}${type?.startsWith('[') ? ` Body: ${type}.` : ''}`;
}

function schemasPage(schemas: Readonly<Record<string, JsonSchema>>): string {
  return blocks(
    '# API: schemas',
    'The objects in the bodies of requests and responses.',
    ...Object.entries(schemas)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, schema]) =>
        blocks(
          `## ${name}`,
          schema.description && sentence(schema.description),
          schema.properties ? fieldList(schema, linkToLocal).join('\n') : structureOf(schema),
        ),
      ),
  );
}

const linkToLocal = (name: string): string => `[${name}](#${name.toLowerCase()})`;

/** A schema without `properties`: a list for each alternative, or its type. */
function structureOf(schema: JsonSchema): string {
  const variants = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const objects = variants.filter(({ properties }) => properties);
  if (objects.length === 0) return `Type: ${typeOf(schema, linkToLocal)}`;
  return blocks(
    ...objects.flatMap((variant, at) => [
      at === 0 ? 'Either:' : 'Or:',
      fieldList(variant, linkToLocal).join('\n'),
    ]),
  );
}
