import { join } from 'node:path';
import type { SettingSources } from '../base/resolve-settings.ts';

export interface OtherServer {
  readonly summary: string;
  readonly remedy: string;
}

/**
 * Describes the setting, such as an environment variable, that overrides the server in the user file,
 * which `license enroll` writes. Returns undefined if none does.
 */
export function findOtherServer(
  [used, ...lesser]: SettingSources['server_url'],
  home: string,
): OtherServer | undefined {
  const own = lesser.find(({ origin }) => origin.startsWith(`${join(home, 'config.yaml')}:`));
  if (own === undefined || own.value === used.value || used.origin.startsWith('--')) {
    return undefined;
  }
  return {
    summary: `${used.origin} names the server ${used.value}, but ${own.origin} names ${own.value}`,
    remedy: `If this machine is enrolled at ${own.value}, remove ${used.origin}; otherwise enroll it at ${used.value} with \`service-local license enroll\` and a new code.`,
  };
}
