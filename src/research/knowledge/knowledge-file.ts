import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { plainUrl, readYamlFile } from '../../base/yaml-file.ts';

const MOST_INSTANCES = 20;
const USUAL_TIMEOUT_SECONDS = 3;

/** Unknown fields are refused, and with them tokens: these stay in the environment. */
const instanceSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a name in lower case'),
  /** Origin of the server. */
  url: plainUrl.refine((text) => URL.parse(text)?.pathname === '/', {
    message: 'must be an origin such as https://knowledge.example',
  }),
  /** The variable of the environment that has the token, one for the scope `read` of that server. */
  token_env: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable'),
});

const fileSchema = z.strictObject({
  /** That each of them has for its answer; the server itself must answer in 30 seconds. */
  timeout_seconds: z.number().min(0.1).max(20).default(USUAL_TIMEOUT_SECONDS),
  instances: z
    .array(instanceSchema)
    .max(MOST_INSTANCES)
    .default([])
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, {
      message: 'must not name one twice',
    }),
});

/** Another server whose knowledge is asked. */
export type Instance = z.output<typeof instanceSchema>;

/** Which other servers are asked, and for how long. */
export type FederationSettings = z.output<typeof fileSchema>;

/**
 * Reads a YAML or JSON file of instances; there are none where there is no file.
 * @throws ServiceError `invalid_setting` with every problem.
 */
export function readKnowledgeFile(file: string): FederationSettings {
  const settings = readYamlFile(file, {
    schema: fileSchema,
    refuse: (problems) =>
      new ServiceError('invalid_setting', `knowledge_file ${file} cannot be used`, {
        problems,
        remedy:
          'Correct it: instances: [{name: NAME, url: ORIGIN, token_env: VARIABLE}], without any tokens.',
      }),
    secretsHint: 'the token belongs into the environment, and the name of its variable here',
  });
  return settings ?? { timeout_seconds: USUAL_TIMEOUT_SECONDS, instances: [] };
}
