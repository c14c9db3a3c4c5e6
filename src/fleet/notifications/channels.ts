import { isLoopbackHost } from '../../base/loopback.ts';
import type { ChannelSettings, NotificationSettings } from './channels-file.ts';
import type { OutgoingMessage } from './notices.ts';
import { findPrivateLiteral } from './public-address.ts';
import { sendEmail } from './send-email.ts';
import { SendFailure } from './send-failure.ts';
import { sendTelegram } from './send-telegram.ts';
import { parseWebhookSecret, sendWebhook } from './send-webhook.ts';

export interface Channel {
  readonly name: string;
  readonly type: ChannelSettings['type'];
  /** Why it cannot send, such as a missing secret. */
  readonly fault: string | null;
  /** @throws an error that `describeFailure` describes. */
  readonly send: (message: OutgoingMessage) => Promise<void>;
}

export type Channels = ReadonlyMap<string, Channel>;

type ListedChannel = Pick<Channel, 'name' | 'fault'> & {
  /** Null if this server does not have the channel. */
  readonly type: Channel['type'] | null;
};

/** @param env contains the secrets of the channels. */
export function openChannels({ channels }: NotificationSettings, env: NodeJS.ProcessEnv): Channels {
  return new Map(
    Object.entries(channels).map(([name, settings]) => [name, openChannel(name, settings, env)]),
  );
}

/**
 * Lists the channels of this server, then the channels that rules use but this server lacks: another
 * server on the same database may have them, or they were removed from the file.
 */
export function listChannels(
  channels: Channels,
  rules: readonly { readonly name: string; readonly channel: string }[],
): ListedChannel[] {
  const lacking = Map.groupBy(
    rules.filter(({ channel }) => !channels.has(channel)),
    ({ channel }) => channel,
  );
  return [
    ...[...channels.values()].map(({ name, type, fault }) => ({ name, type, fault })),
    ...[...lacking].map(([name, users]) => {
      const names = users.map((rule) => rule.name).join(', ');
      const fault = `not in the notifications_file of this server, but used by rules: ${names}`;
      return { name, type: null, fault };
    }),
  ];
}

function openChannel(name: string, settings: ChannelSettings, env: NodeJS.ProcessEnv): Channel {
  const { type, allow_private_address } = settings;
  const refused = allow_private_address ? undefined : findPrivateLiteral(hostOf(settings));
  const send = refused === undefined ? senderOf(settings, env) : { fault: refused.message };
  if (typeof send === 'function') return { name, type, fault: null, send };
  const refuse = async (): Promise<never> => {
    throw new SendFailure(send.fault);
  };
  return { name, type, fault: send.fault, send: refuse };
}

function hostOf(settings: ChannelSettings): string {
  if (settings.type === 'email') return settings.host;
  return new URL(settings.type === 'webhook' ? settings.url : settings.api_url).hostname;
}

/** Binds the secrets of a channel, so that nothing else holds them. */
function senderOf(
  settings: ChannelSettings,
  env: NodeJS.ProcessEnv,
): Channel['send'] | { readonly fault: string } {
  if (settings.type === 'webhook') {
    const secret = env[settings.secret_env];
    if (!secret) return missing(settings.secret_env);
    const key = parseWebhookSecret(secret);
    if (key !== undefined) return (message) => sendWebhook(settings, key, message);
    return { fault: `${settings.secret_env} must contain whsec_ and 24 to 64 bytes in base64` };
  }
  if (settings.type === 'telegram') {
    const token = env[settings.token_env];
    if (!token) return missing(settings.token_env);
    if (/^[\w:-]+$/.test(token)) return (message) => sendTelegram(settings, token, message);
    return { fault: `${settings.token_env} must contain the token of a Telegram bot` };
  }
  const { host, security, user, password_env } = settings;
  if ((user === undefined) !== (password_env === undefined)) {
    return { fault: 'user and password_env must be set together' };
  }
  if (password_env !== undefined && security === 'none' && !isLoopbackHost(host)) {
    return {
      fault:
        'security: none would send the password unencrypted; set security to starttls or tls, or remove user and password_env',
    };
  }
  const password = password_env === undefined ? undefined : env[password_env];
  if (password_env !== undefined && !password) return missing(password_env);
  return (message) => sendEmail(settings, password, message);
}

function missing(variable: string): { readonly fault: string } {
  return { fault: `${variable} is not set in the environment of the server` };
}
