import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inProcess } from '../cli/in-process.ts';
import { BIN, serviceLocal, type Result } from '../cli/service-local.ts';
import { isAtLength } from '../length.ts';

let root: string;
let home: string;
let project: string;
let below: string;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'service-local-settings-')));
  home = join(root, 'home');
  project = join(root, 'project');
  below = join(project, 'bots', 'fast');
  await mkdir(home);
  await mkdir(below, { recursive: true });
});

afterEach(() => rm(root, { recursive: true, force: true }));

function config(args: readonly string[], env: Record<string, string> = {}): Promise<Result> {
  return inProcess(['config', ...args], {
    cwd: below,
    env: { SERVICE_LOCAL_HOME: home, ...env },
  });
}

async function explain(args: readonly string[], env?: Record<string, string>): Promise<unknown> {
  const { stdout } = await config(['explain', ...args, '--json'], env);
  const { winner, losers } = JSON.parse(stdout) as { winner: unknown; losers: unknown[] };
  return [winner, ...losers];
}

describe('the source of a setting', () => {
  it('takes the option, else the environment, the project file, the user file, the default', async () => {
    await writeFile(join(project, 'service-local.yaml'), 'strategy_timeout_seconds: 3\n');
    await writeFile(join(home, 'config.yaml'), '# mine\nstrategy_timeout_seconds: 4.5\n');
    const sources = [
      { value: 1, origin: '--strategy-timeout-seconds' },
      { value: 2, origin: 'SERVICE_LOCAL_STRATEGY_TIMEOUT_SECONDS' },
      { value: 3, origin: `${join(project, 'service-local.yaml')}:1` },
      { value: 4.5, origin: `${join(home, 'config.yaml')}:2` },
      { value: 30, origin: 'default' },
    ];
    const key = 'strategy_timeout_seconds';
    const environment = { SERVICE_LOCAL_STRATEGY_TIMEOUT_SECONDS: '2' };
    expect(await explain([key, '--strategy-timeout-seconds', '1'], environment)).toEqual(sources);
    expect(await explain([key], environment)).toEqual(sources.slice(1));
    expect(await explain([key])).toEqual(sources.slice(2));
    await rm(join(project, 'service-local.yaml'));
    expect(await explain([key])).toEqual(sources.slice(3));
    await rm(join(home, 'config.yaml'));
    expect(await explain([key])).toEqual(sources.slice(4));
  });

  it('shows the sources of a setting, the one in force first', async () => {
    const { stdout } = await config(['explain', 'workers', '--workers', '3'], {
      SERVICE_LOCAL_WORKERS: '12',
    });
    expect(stdout.split('\n').slice(2, 5)).toEqual([
      '            value  from',
      'in force    3      --workers',
      'overridden  12     SERVICE_LOCAL_WORKERS',
    ]);
  });

  it('reads the nearest project file only', async () => {
    await writeFile(join(project, 'service-local.yaml'), 'workers: 2\n');
    await writeFile(join(below, 'service-local.yaml'), 'workers: 3\n');
    expect(await explain(['workers'])).toMatchObject([{ value: 3 }, { origin: 'default' }]);
  });

  it('ignores empty variables, and takes --no-color as the option of color', async () => {
    expect(await explain(['workers'], { SERVICE_LOCAL_WORKERS: '' })).toMatchObject([
      { origin: 'default' },
    ]);
    expect(await explain(['color', '--no-color'], { SERVICE_LOCAL_COLOR: 'auto' })).toEqual([
      { value: 'never', origin: '--no-color' },
      { value: 'auto', origin: 'SERVICE_LOCAL_COLOR' },
      { value: 'auto', origin: 'default' },
    ]);
  });
});

describe('a directory', () => {
  it('resolves directories in files against the file, others against the working directory', async () => {
    await writeFile(join(project, 'service-local.yaml'), 'runs_dir: 007\n');
    expect(
      await explain(['runs_dir', '--runs-dir', '../a'], { SERVICE_LOCAL_RUNS_DIR: 'b' }),
    ).toMatchObject([
      { value: join(project, 'bots', 'a') },
      { value: join(below, 'b') },
      { value: join(project, '007') },
      { value: join(below, 'runs') },
    ]);
  });

  it.runIf(isAtLength)(
    'places the catalogue in the home directory, and expands a leading tilde',
    async () => {
      await writeFile(join(project, 'service-local.yaml'), 'runs_dir: ~/runs\n');
      // The tilde is expanded by the process, so this needs one with its own HOME.
      const env = { HOME: root, SERVICE_LOCAL_HOME: home };
      const { stdout } = await serviceLocal(['config', 'list', '--json'], { cwd: below, env });
      expect(JSON.parse(stdout)).toMatchObject({
        home: { value: home, origin: 'SERVICE_LOCAL_HOME' },
        catalogue_dir: { value: join(home, 'catalogue'), origin: 'default' },
        runs_dir: { value: join(root, 'runs') },
      });
    },
  );
});

describe('an invalid setting', () => {
  it('reports all invalid settings at once, each with its place', async () => {
    const file = join(project, 'service-local.yaml');
    await writeFile(file, 'workrs: 2\ncolor: nevr\nworkers:\n  - 1\nhome: /tmp\nruns_dir:\n');
    const { code, stderr } = await config(['list', '--strategy-timeout-seconds', '0'], {
      SERVICE_LOCAL_WORKERS: '1.5',
    });
    expect(code).toBe(2);
    expect(stderr.trimEnd().split('\n')).toEqual([
      'error invalid_setting: 7 settings are invalid',
      "  invalid_setting SERVICE_LOCAL_WORKERS: workers needs a whole number from 1, not '1.5'",
      "  invalid_setting --strategy-timeout-seconds: strategy_timeout_seconds needs a number of seconds from 0.001 to 86400, not '0'",
      `  ${file}:1:1 /workrs unknown_setting unknown setting 'workrs' (did you mean workers?)`,
      `  ${file}:2:8 /color invalid_setting color needs auto or always or never, not 'nevr' (did you mean never?)`,
      `  ${file}:4:3 /workers invalid_setting workers needs a whole number from 1`,
      `  ${file}:5:1 /home invalid_setting home can be set only by SERVICE_LOCAL_HOME`,
      `  ${file}:6:10 /runs_dir invalid_setting runs_dir needs a directory`,
      '→ Correct or remove each invalid setting.',
    ]);
  });

  it('reports an invalid setting even if another source takes precedence', async () => {
    await writeFile(join(home, 'config.yaml'), 'workers: 0\n');
    const { code, stderr } = await config(['list', '--workers', '2']);
    expect(code).toBe(2);
    expect(stderr).toContain(`${join(home, 'config.yaml')}:1:10 /workers invalid_setting`);
  });

  it.each([
    ['workers: 1\nworkers: 2\n', ':2:1'],
    ['workers: [1\n', ':2:1'],
    ['- workers\n', ':1:1'],
    ['just words\n', ':1:1'],
  ])('reports the position at which the file %j cannot be parsed', async (text, place) => {
    const file = join(project, 'service-local.yaml');
    await writeFile(file, text);
    const { code, stderr } = await config(['list']);
    expect(code).toBe(2);
    expect(stderr).toContain(`${file}${place}`);
  });

  it.each(['', '# only a comment\n'])('accepts an empty file (%j)', async (text) => {
    await writeFile(join(project, 'service-local.yaml'), text);
    expect((await config(['list'])).code).toBe(0);
  });

  it.each([
    ['0.001', 0],
    ['86400', 0],
    ['0.0009', 2],
    ['86400.5', 2],
    ['999999', 2],
  ])('checks the bounds of a timeout: %s exits with %i', async (timeout, exitCode) => {
    const { code } = await config(['list', '--strategy-timeout-seconds', timeout]);
    expect(code).toBe(exitCode);
  });

  it.each([
    ['--port', '00080', 0],
    ['--port', '000080', 2],
    ['--port', '65536', 2],
    ['--strategy-memory', '00512', 0],
    ['--strategy-memory', '000512', 2],
    ['--strategy-memory', '127', 2],
    ['--chat-seconds', '000003600', 0],
    ['--chat-seconds', '0000003600', 2],
    ['--chat-seconds', '3601', 2],
  ])(
    'checks the bounds and the length of a number: %s %s exits with %i',
    async (flag, text, exitCode) => {
      expect((await config(['list', flag, text])).code).toBe(exitCode);
    },
  );

  it('suggests the setting that was probably meant', async () => {
    const { code, stderr } = await config(['explain', 'run_dir']);
    expect(code).toBe(2);
    expect(stderr).toBe(
      "error unknown_setting: unknown setting 'run_dir'\n→ Did you mean runs_dir?\n",
    );
  });

  it('ignores the variables that Kubernetes sets for a Service of this name', async () => {
    const variables = {
      SERVICE_LOCAL_PORT: 'tcp://10.0.0.1:80',
      SERVICE_LOCAL_SERVER_PORT: 'tcp://10.0.0.2:80',
    };
    expect(JSON.parse((await config(['list', '--json'], variables)).stdout)).toMatchObject({
      server_port: { value: 8787, origin: 'default' },
    });
  });

  it.each([
    ['server_port', '65536', 'a port from 0 to 65535'],
    ['server_host', 'a host', 'a host name or IP address'],
    ['server_url', 'ftp://a.example', 'an origin such as https://licenses.example'],
    ['server_url', 'https://a.example/path', 'an origin such as https://licenses.example'],
    ['server_public_url', 'a.example', 'auto or an origin such as https://licenses.example'],
    [
      'server_trusted_proxies',
      '10.0.0.0/33',
      'auto, none, or addresses and networks such as 10.0.0.0/8,fd00::1',
    ],
    [
      'server_trusted_proxies',
      'proxy.example',
      'auto, none, or addresses and networks such as 10.0.0.0/8,fd00::1',
    ],
    ['license_registry_enforced', 'yes', 'true or false'],
    ['license_ttl_seconds', '299', 'a whole number of seconds from 300 to 126144000'],
    ['license_grace_period_seconds', '1.5', 'a whole number of seconds from 0 to 31536000'],
    ['license_issuer', 'two words', '1 to 128 visible ASCII characters'],
  ])('rejects %s with the value %s', async (key, text, needed) => {
    const name = `SERVICE_LOCAL_${key.toUpperCase()}`;
    const { code, stderr } = await config(['list'], { [name]: text });
    expect(code).toBe(2);
    expect(stderr).toContain(`invalid_setting ${name}: ${key} needs ${needed}, not '${text}'`);
  });
});

describe('a setting of the server', () => {
  it('hides a password in an invalid URL', async () => {
    const url = 'https://me:hunter2@licenses.example';
    const { code, stderr } = await config(['list', '--url', url]);
    expect(code).toBe(2);
    expect(stderr).toContain("not 'https://…@licenses.example'");
  });

  it('accepts short options of the server, and booleans in files', async () => {
    await writeFile(
      join(home, 'config.yaml'),
      'license_registry_enforced: false\nserver_public_url: https://licenses.example/\n',
    );
    const typed = ['--host', '::', '--port', '0', '--url', 'https://LICENSES.example:443'];
    const { stdout } = await config(['list', '--json', ...typed]);
    expect(JSON.parse(stdout)).toMatchObject({
      server_host: { value: '::', origin: '--host' },
      server_port: { value: 0, origin: '--port' },
      server_url: { value: 'https://licenses.example', origin: '--url' },
      server_public_url: { value: 'https://licenses.example' },
      license_registry_enforced: { value: false },
    });
  });

  it('rejects server settings in a project file, which other people may have written', async () => {
    await writeFile(
      join(project, 'service-local.yaml'),
      'server_url: https://evil.example\nlicense_registry_enforced: false\n',
    );
    const { code, stderr } = await config(['list']);
    expect(code).toBe(2);
    expect(stderr).toContain(
      'service-local.yaml:1:1 /server_url invalid_setting server_url can be set only by SERVICE_LOCAL_SERVER_URL or the user file',
    );
    expect(stderr).toContain('service-local.yaml:2:1 /license_registry_enforced');
  });

  it('never shows the variables that contain secrets', async () => {
    const { code, stdout, stderr } = await config(['list', '--json'], {
      DATABASE_URL: 'postgres://me:hunter2@db.example/leases',
      SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: 'hunter2',
      SERVICE_LOCAL_TOKEN: 'hunter2',
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).not.toContain('hunter2');
  });
});

describe('a home directory of another user', () => {
  const uid = 12_345;
  const asAnother = (...words: string[]): Promise<Result> =>
    serviceLocal(words, { cwd: '/', uid, env: { SERVICE_LOCAL_HOME: home } });
  /** Only root may run a process as another user, who must also be able to read this checkout. */
  const canRunAsAnother =
    process.getuid?.() === 0 &&
    spawnSync(process.execPath, ['-e', `fs.accessSync(${JSON.stringify(BIN)})`], { cwd: '/', uid })
      .status === 0;

  beforeEach(() => chmod(root, 0o755));

  it.runIf(canRunAsAnother && isAtLength)(
    'names the owner of a home directory that this user cannot read',
    async () => {
      await chmod(home, 0o700);
      const { code, stderr } = await asAnother('config', 'list');
      expect(code).toBe(3);
      expect(stderr).toContain(
        `error invalid_data: ${join(home, 'config.yaml')} cannot be read (EACCES): ${home} belongs to user 0, but this process runs as user 12345\n→ Run the command as that user`,
      );
    },
  );

  it.runIf(canRunAsAnother && isAtLength)(
    'lets doctor report a home directory of another user',
    async () => {
      await chmod(home, 0o700);
      const { code, stdout } = await asAnother('doctor', '--offline', '--json');
      expect(code).toBe(2);
      const { checks } = JSON.parse(stdout) as { checks: { code: string }[] };
      expect(checks.find((one) => one.code === 'home')).toMatchObject({
        status: 'fail',
        summary: `${home} belongs to user 0, but this process runs as user 12345`,
      });
    },
  );
});
