import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { plainUrl, readYamlFile } from '../../base/yaml-file.ts';

const MOST_CHANNELS = 20;
const DEFAULT_TIMEOUT_SECONDS = 10;

const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of an environment variable');

/** Line breaks would end a header of the e-mail. */
const address = z.string().regex(/^[^\s<>,;]+@[^\s<>,;]+$/, 'must be an e-mail address');

const common = {
  /** Allows loopback, private and link-local addresses. */
  allow_private_address: z.boolean().default(false),
};

/** Strict, so that a secret in the file is an error; secrets belong in the environment. */
const channelSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('webhook'),
    ...common,
    url: plainUrl,
    /** Variable with the secret that signs requests: `whsec_` and 24 to 64 bytes in base64. */
    secret_env: variable,
  }),
  z.strictObject({
    type: z.literal('email'),
    ...common,
    host: z.string().regex(/^[\w.:-]{1,253}$/, 'must be a host name or IP address'),
    port: z.int().min(1).max(65_535).default(587),
    /** `starttls` fails if the server does not offer it; `none` allows a password only for a loopback host. */
    security: z.enum(['starttls', 'tls', 'none']).default('starttls'),
    user: z.string().min(1).max(256).optional(),
    password_env: variable.optional(),
    from: address,
    to: z.array(address).min(1).max(50),
  }),
  z.strictObject({
    type: z.literal('telegram'),
    ...common,
    token_env: variable,
    /** Id of a chat, or the name of a channel, such as `@alerts`. */
    chat_id: z
      .union([
        z
          .string()
          .regex(
            /^(-?\d{1,20}|@\w{1,64})$/,
            'must be the id of a chat, or the name of a channel such as @alerts',
          ),
        z.int(),
      ])
      .transform(String),
    api_url: plainUrl.default('https://api.telegram.org'),
  }),
]);

const fileSchema = z.strictObject({
  /** Time limit of an attempt. */
  timeout_seconds: z.number().min(0.1).max(20).default(DEFAULT_TIMEOUT_SECONDS),
  channels: z
    .record(
      z
        .string()
        .regex(
          /^[a-z0-9][a-z0-9_-]{0,63}$/,
          'must be a name of lowercase letters, digits, _ and -',
        ),
      channelSchema,
    )
    .default({})
    .refine((all) => Object.keys(all).length <= MOST_CHANNELS, {
      message: `must not have more than ${MOST_CHANNELS} channels`,
    }),
});

export type ChannelSettings = z.output<typeof channelSchema>;

/** Settings of one type of channel. */
export type SettingsOf<T extends ChannelSettings['type']> = Extract<ChannelSettings, { type: T }>;

export type NotificationSettings = z.output<typeof fileSchema>;

/**
 * Reads the YAML or JSON file of channels. A missing file means no channels.
 * @throws ServiceError `invalid_setting` with all problems.
 */
export function readChannelsFile(file: string): NotificationSettings {
  const settings = readYamlFile(file, {
    schema: fileSchema,
    refuse: (problems) =>
      new ServiceError('invalid_setting', `notifications_file ${file} is invalid`, {
        problems,
        remedy:
          'Correct the file. A channel is NAME: {type: webhook, url: URL, secret_env: VARIABLE}, or has the type email or telegram.',
      }),
    secretsHint: 'put the secret into an environment variable, and the name of the variable here',
  });
  return settings ?? { timeout_seconds: DEFAULT_TIMEOUT_SECONDS, channels: {} };
}
