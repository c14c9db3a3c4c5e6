import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { ServiceError, type Problem } from '../../../base/errors.ts';
import { ID_FORMAT, ID_FORMAT_RULE } from '../../../base/id-format.ts';
import { definitionSchema } from '../../venues/exchanges-file.ts';
import { openingSchema } from '../../opening.ts';
import { plainUrl, readYamlFile } from '../../../base/yaml-file.ts';

const path = z.string().min(1).max(4096);

const venueSchema = z.discriminatedUnion('type', [
  /** Orders are filled from the bars. */
  z.strictObject({ type: z.literal('simulated') }),
  /** Orders go to the exchange; the directory has the files `apiKey`, `secret`, `password`, `uid`. */
  z.strictObject({ type: z.literal('exchange'), credentials_dir: path }),
]);

const fileSchema = z
  .strictObject({
    apiVersion: z.literal('run/v1'),
    kind: z.literal('Run'),
    /** The spec, as authored. */
    bot: path,
    /** JSON file with the models of the bot, and for a simulated venue the code of its strategy. */
    bundle: path.optional(),
    deployment_id: z.string().regex(ID_FORMAT, ID_FORMAT_RULE),
    /** Version of the bot. */
    version: z.int().min(1).default(1),
    /** Directory of the log; belongs to this deployment alone, and must outlive each process. */
    state_dir: path,
    /** Source of bars, and venue of orders; without it, the data of the spec are replayed. */
    exchange: definitionSchema
      .extend({ name: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a lower-case name') })
      .optional(),
    venue: venueSchema.default({ type: 'simulated' }),
    /** Server that supervises the deployment. */
    control: z
      .strictObject({
        url: plainUrl,
        token_file: path,
      })
      .optional(),
    health: z
      .strictObject({
        host: z.string().min(1).default('127.0.0.1'),
        port: z.int().min(0).max(65_535),
      })
      .optional(),
    /** Multiple of the market's pace in a replay. */
    speed: z.union([z.literal('max'), z.number().positive().finite()]).optional(),
    /** Account of an earlier deployment that this one continues. */
    opening: openingSchema.optional(),
  })
  .refine(({ venue, exchange }) => venue.type === 'simulated' || exchange !== undefined, {
    error: 'is missing: the venue type exchange needs it',
    path: ['exchange'],
  })
  .refine(({ venue, control }) => venue.type === 'simulated' || control !== undefined, {
    error: 'is missing: a deployment at an exchange must have a server that can halt it',
    path: ['control'],
  })
  .refine(({ speed, exchange }) => speed === undefined || exchange === undefined, {
    error: 'applies only to replayed data, not to the bars of an exchange',
    path: ['speed'],
  });

/** Configuration of a runner, with absolute paths. */
export type RunConfig = z.output<typeof fileSchema>;

/**
 * @param file YAML or JSON; paths in it are relative to it.
 * @throws ServiceError `file_not_found`; `invalid_setting` with every problem.
 */
export function readRunConfig(file: string): RunConfig {
  const found = readYamlFile(file, { schema: fileSchema, refuse: (all) => invalid(file, all) });
  if (found === undefined) {
    throw new ServiceError('file_not_found', `there is no file ${file}`, {
      remedy: 'Name a file like examples/run.yaml.',
    });
  }
  const at = (name: string): string => resolve(dirname(file), name);
  const { bundle, venue, control } = found;
  return {
    ...found,
    bot: at(found.bot),
    state_dir: at(found.state_dir),
    ...(bundle !== undefined && { bundle: at(bundle) }),
    venue:
      venue.type === 'exchange' ? { ...venue, credentials_dir: at(venue.credentials_dir) } : venue,
    ...(control && { control: { ...control, token_file: at(control.token_file) } }),
  };
}

function invalid(file: string, problems: readonly Problem[]): ServiceError {
  return new ServiceError('invalid_setting', `${file} cannot be run`, {
    problems,
    remedy:
      'Correct it: a file of `kind: Run` names the bot file; examples/run.yaml has all fields. Keys and tokens are in files of their own.',
  });
}
