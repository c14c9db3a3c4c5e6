/**
 * The published schemas of Kubernetes, from two packages generated from its OpenAPI document. One
 * checks types and required fields, the other knows all fields. Together they reject what an API
 * server with strict field validation rejects.
 */
import { createRequire } from 'node:module';

interface Model {
  validate(): void;
}

interface Attribute {
  readonly baseName: string;
  readonly type: string;
}

interface Typed {
  getAttributeTypeMap(): readonly Attribute[];
}

const typed = createRequire(import.meta.url)('@kubernetes/client-node') as Readonly<
  Record<string, Typed | undefined>
>;

/** Returns the faults of an object of the kind, one sentence each. */
export type Validator = (object: object) => string[];

const known = new Map<string, Promise<Validator>>();

/** @param apiVersion for example `apps/v1`. */
export function validatorOf(apiVersion: string, kind: string): Promise<Validator> {
  const key = `${apiVersion}/${kind}`;
  const validator = known.get(key) ?? loadValidator(apiVersion, kind);
  known.set(key, validator);
  return validator;
}

async function loadValidator(apiVersion: string, kind: string): Promise<Validator> {
  const path = import.meta.resolve(`kubernetes-models/${apiVersion}/${kind}`);
  const module = (await import(path)) as Readonly<Record<string, new (data: object) => Model>>;
  const ModelOfKind = module[kind]!;
  const version = apiVersion.split('/').at(-1)!;
  const title = `${version[0]!.toUpperCase()}${version.slice(1)}${kind}`;
  const type = [title, `Core${title}`].find((name) => typed[name] !== undefined);
  if (type === undefined) throw new Error(`the client has no ${title}`);
  return (object) => [...typeFaults(ModelOfKind, object), ...unknownFields(object, type, '')];
}

function typeFaults(ModelOfKind: new (data: object) => Model, object: object): string[] {
  try {
    new ModelOfKind(object).validate();
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

function unknownFields(value: unknown, type: string, path: string): string[] {
  const item = /^Array<(.*)>$/.exec(type)?.[1];
  if (item !== undefined) {
    const items = Array.isArray(value) ? value : [];
    return items.flatMap((each, at) => unknownFields(each, item, `${path}[${at}]`));
  }
  const entry = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (typeof value !== 'object' || value === null) return [];
  if (entry !== undefined) {
    return Object.entries(value).flatMap(([key, each]) =>
      unknownFields(each, entry, `${path}.${key}`),
    );
  }
  const attributes = typed[type]?.getAttributeTypeMap?.();
  if (attributes === undefined) return [];
  return Object.entries(value).flatMap(([key, each]) => {
    const attribute = attributes.find(({ baseName }) => baseName === key);
    return attribute === undefined
      ? [`unknown field "${`${path}.${key}`.slice(1)}"`]
      : unknownFields(each, attribute.type, `${path}.${key}`);
  });
}
