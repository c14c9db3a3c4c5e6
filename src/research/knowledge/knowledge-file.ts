import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { plainUrl, readYamlFile } from '../../base/yaml-file.ts';

const MOST_INSTANCES = 20;
const USUAL_TIMEOUT_SECONDS = 3;

/** Strict, so that a token in the file is an error; tokens belong in the environment. */
const instanceSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a name of lowercase letters, digits, _ and -'),
  url: plainUrl.refine((text) => URL.parse(text)?.pathname === '/', {
    message: 'must be an origin such as https://knowledge.example',
  }),
  /** Environment variable with a token of that server, which needs the scope `read`. */
  token_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of an environment variable'),
});

const fileSchema = z.strictObject({
  /** Per instance. The server itself must answer a search within 30 seconds. */
  timeout_seconds: z.number().min(0.1).max(20).default(USUAL_TIMEOUT_SECONDS),
  instances: z
    .array(instanceSchema)
    .max(MOST_INSTANCES)
    .default([])
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, {
      message: 'must not contain a name twice',
    }),
});

/** Another server whose knowledge is searched, too. */
export type Instance = z.output<typeof instanceSchema>;

export type FederationSettings = z.output<typeof fileSchema>;

/**
 * Reads the YAML or JSON file of instances. A missing file means no instances.
 * @throws ServiceError `invalid_setting` with all problems.
 */
export function readKnowledgeFile(file: string): FederationSettings {
  const settings = readYamlFile(file, {
    schema: fileSchema,
    refuse: (problems) =>
      new ServiceError('invalid_setting', `knowledge_file ${file} is invalid`, {
        problems,
        remedy:
          'Use this form, without tokens: `instances: [{name: NAME, url: ORIGIN, token_env: VARIABLE}]`.',
      }),
    secretsHint: 'put the token into an environment variable, and the name of the variable here',
  });
  return settings ?? { timeout_seconds: USUAL_TIMEOUT_SECONDS, instances: [] };
}
