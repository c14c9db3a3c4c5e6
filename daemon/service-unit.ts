import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { ServiceError } from '../src/errors.ts';

/** Whether the daemon is started when its user logs in, or when the machine starts. */
export type ServiceScope = 'user' | 'system';

/** What a service manager has to know of the daemon. */
export interface Service {
  /** How to run the CLI; its paths are absolute. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Directories in which it writes. */
  readonly writable: readonly string[];
  /** As whom it runs; undefined where that is whoever starts it. */
  readonly user?: string | undefined;
}

type Command = readonly [program: string, ...args: string[]];

/** How the service manager of a machine is given the daemon. */
export interface ServiceManager {
  /** Of the file that describes the service. */
  readonly path: string;
  readonly describe: (service: Service) => string;
  /** Run before the file is written or removed; fails where there is no such service. */
  readonly stop: Command;
  /** Run one after the other when the file is there. */
  readonly start: readonly Command[];
  /** Run when it is gone. */
  readonly forget: readonly Command[];
}

const UNIT = 'service-local.service';
const LABEL = 'service-local.daemon';

/** @throws ServiceError `usage` on a system of which the service manager is not known. */
export function serviceManager(
  platform: NodeJS.Platform,
  scope: ServiceScope,
  env: NodeJS.ProcessEnv,
): ServiceManager {
  const isUser = scope === 'user';
  const home = env['HOME'] || homedir();
  if (platform === 'linux') {
    const config = env['XDG_CONFIG_HOME'] || join(home, '.config');
    const systemctl = (...args: string[]): Command => [
      'systemctl',
      ...(isUser ? ['--user'] : []),
      ...args,
    ];
    return {
      path: join(isUser ? join(config, 'systemd/user') : '/etc/systemd/system', UNIT),
      describe: (service) => systemdUnit(service, scope),
      stop: systemctl('disable', '--now', UNIT),
      start: [systemctl('daemon-reload'), systemctl('enable', '--now', UNIT)],
      forget: [systemctl('daemon-reload')],
    };
  }
  if (platform === 'darwin') {
    const directory = isUser ? join(home, 'Library/LaunchAgents') : '/Library/LaunchDaemons';
    const path = join(directory, `${LABEL}.plist`);
    const domain = isUser ? `gui/${process.getuid?.()}` : 'system';
    return {
      path,
      describe: launchdPlist,
      stop: ['launchctl', 'bootout', `${domain}/${LABEL}`],
      start: [['launchctl', 'bootstrap', domain, path]],
      forget: [],
    };
  }
  throw new ServiceError('usage', `the service manager of ${platform} is not known here`, {
    remedy: 'Let it run `service-local daemon run`.',
  });
}

const CARRIED_PATHS = [
  'SERVICE_LICENSE_LEASE_PATH',
  'SERVICE_LICENSE_PUBLIC_KEY_PATH',
  'NODE_EXTRA_CA_CERTS',
];
const CARRIED_PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [
  name,
  name.toLowerCase(),
]);

/**
 * What the service needs of the environment in which it was installed.
 * @returns and the names of those that it needs, but that hold a password: everybody may read the
 * file of a service.
 */
export function serviceEnvironment(env: NodeJS.ProcessEnv): {
  readonly environment: Readonly<Record<string, string>>;
  readonly secret: readonly string[];
} {
  const given = (names: readonly string[]): [string, string][] =>
    names.flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  const proxies = given(CARRIED_PROXIES);
  const isSecret = ([, value]: [string, string]): boolean => value.includes('@');
  return {
    environment: Object.fromEntries([
      ...given(CARRIED_PATHS).map(([name, path]) => [name, resolve(path)]),
      ...proxies.filter((one) => !isSecret(one)),
    ]) as Record<string, string>,
    secret: proxies.filter(isSecret).map(([name]) => name),
  };
}

/** What needs no rights, so that the service manager of a user can do it, too. */
const HARDENING = `NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077
`;
/** V8 makes machine code as it runs: MemoryDenyWriteExecute would stop it. */
const SYSTEM_HARDENING = `AmbientCapabilities=
CapabilityBoundingSet=
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=read-only
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
`;

/** See systemd.service(5) and systemd.exec(5). */
function systemdUnit(service: Service, scope: ServiceScope): string {
  const { program, environment, writable, user } = service;
  const isSystem = scope === 'system';
  const [node, ...args] = program.map(quoted);
  const command = [node, ...args.map((arg) => arg.replaceAll('$', '$$$$')), 'daemon', 'run'];
  const variables = Object.entries(environment).map(
    ([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`,
  );
  return `[Unit]
Description=Keeps the license of service-local fresh
${isSystem ? 'Wants=network-online.target\nAfter=network-online.target\n' : ''}StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=${command.join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=30
WatchdogSec=120
TimeoutStopSec=10
${user === undefined ? '' : `User=${user}\n`}${variables.join('')}${HARDENING}${
    isSystem ? `${SYSTEM_HARDENING}ReadWritePaths=${writable.map(quoted).join(' ')}\n` : ''
  }
[Install]
WantedBy=${isSystem ? 'multi-user' : 'default'}.target
`;
}

/** As one word in which nothing stands for anything else; see systemd.syntax(7). */
function quoted(text: string): string {
  const escaped = text
    .replaceAll(/["\\]/g, String.raw`\$&`)
    .replaceAll('%', '%%')
    .replaceAll(/\p{Cc}/gu, (one) => `\\x${one.codePointAt(0)!.toString(16).padStart(2, '0')}`);
  return `"${escaped}"`;
}

/** See launchd.plist(5). */
function launchdPlist({ program, environment, user }: Service): string {
  const words = [...program, 'daemon', 'run'].map((word) => `    ${element('string', word)}\n`);
  const variables = Object.entries(environment).map(
    ([name, value]) => `    ${element('key', name)}\n    ${element('string', value)}\n`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${words.join('')}  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join('')}  </dict>
${user === undefined ? '' : `  <key>UserName</key>\n  ${element('string', user)}\n`}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>30</integer>
  <key>ProcessType</key>
  <string>Background</string>
  <key>Umask</key>
  <integer>63</integer>
</dict>
</plist>
`;
}

function element(name: string, text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<${name}>${escaped}</${name}>`;
}
