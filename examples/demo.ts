/**
 * `npm run demo` creates a bot from an example and backtests it. Then it starts an identity service,
 * licenses a machine and examines that with `doctor`. It runs the commands that a person would type.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';

const root = join(import.meta.dirname, '..');
const program = join(root, 'dist/bin/service-local.js');
const directory = 'runs/demo';
const vendor = join(root, directory, 'vendor');
const customer = join(root, directory, 'customer');

interface RunOptions {
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input. */
  readonly input?: string;
  /** Exit codes that count as success; 0 by default. */
  readonly codes?: readonly number[];
}

/** Prints a command and its output. */
function run(command: string, options: RunOptions = {}): void {
  console.log(`$ npx service-local ${command}\n`);
  start(command.split(' '), options, 'inherit');
  console.log();
}

/** Prints a command, and returns its `--json` document. */
function ask(command: string, options: RunOptions): unknown {
  console.log(`$ npx service-local ${command}`);
  return JSON.parse(start([...command.split(' '), '--json'], options, 'pipe'));
}

function start(
  words: readonly string[],
  { env, input, codes = [0] }: RunOptions,
  stdout: 'inherit' | 'pipe',
): string {
  const done = spawnSync(process.execPath, [program, ...words], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    ...(input !== undefined && { input }),
    stdio: [
      input === undefined ? 'ignore' : 'pipe',
      stdout,
      stdout === 'pipe' ? 'pipe' : 'inherit',
    ],
  });
  if (codes.includes(done.status ?? -1)) return done.stdout;
  throw new Error(
    `${words.join(' ')} ended with ${done.status}: ${done.stdout ?? ''}${done.stderr ?? ''}`,
  );
}

/** Starts a server, and waits for a line with its URL. */
async function serve(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, words, { cwd: root, env: { ...process.env, ...env } });
  const ended = once(child, 'close').then(() => undefined);
  const address = Promise.withResolvers<string>();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', (line) => {
      const [url] = /http:\/\/127[\d.]+:\d+/.exec(line) ?? [];
      if (url !== undefined) address.resolve(url);
    });
  }
  const url = await Promise.race([address.promise, ended]);
  if (url === undefined) throw new Error(`the server ended before it listened: ${words.join(' ')}`);
  return { url, child };
}

function backtest(): void {
  mkdirSync(join(root, directory, 'data'), { recursive: true });
  for (const file of ['sma-crossover.yaml', 'data/sp500-daily.csv']) {
    cpSync(join(root, 'examples', file), join(root, directory, file));
  }
  console.log(`A bot from examples/ in ${directory}/\n`);
  run(`validate ${directory}/sma-crossover.yaml`);
  run(`backtest ${directory}/sma-crossover.yaml --out ${directory}/result`);
}

async function license(): Promise<void> {
  for (const home of [vendor, customer]) {
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home, { mode: 0o700 });
  }
  console.log(`A vendor who issues licenses, in ${directory}/vendor/\n`);
  const home = { SERVICE_LOCAL_HOME: vendor };
  const key = join(vendor, 'license-key.pem');
  ask(`identity keys generate --out ${directory}/vendor/license-key.pem`, { env: home });
  console.log('$ npx service-local server --port 0');
  const signing = { ...home, SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH: key };
  const server = await serve([program, 'server', '--port', '0'], signing);
  const running: ChildProcess[] = [server.child];
  const machine = { SERVICE_LOCAL_HOME: customer, SERVICE_LOCAL_SERVER_URL: server.url };
  try {
    const add = 'identity administrators add ada --token license --password-stdin';
    const { token, recovery_codes } = ask(add, {
      env: home,
      input: 'a password of the demo alone',
    }) as { token: { token: string }; recovery_codes: readonly string[] };
    const env = { SERVICE_LOCAL_SERVER_URL: server.url, SERVICE_LOCAL_TOKEN: token.token };
    ask('identity customers create --id acme --name Acme', { env });
    ask('identity plans create --id pro --name Pro --entitlement live_trading', { env });
    ask(
      `identity contracts create --id acme-pro --customer acme --plan pro --ends-at 2099-01-01T00:00:00Z --code ${recovery_codes[0]}`,
      { env },
    );
    ask('identity deployments create --id tokyo --contract acme-pro --name Tokyo', { env });
    const enrollCode = 'identity devices enroll-code --deployment tokyo';
    const { code } = ask(enrollCode, { env }) as { code: string };

    console.log(`\nA customer's machine, in ${directory}/customer/\n`);
    run(`license enroll --code ${code}`, { env: machine });
    console.log(`$ rm ${directory}/customer/license_lease.json*    # as a disk fault would\n`);
    const lease = join(customer, 'license_lease.json');
    for (const path of [lease, `${lease}.bak`]) rmSync(path);
    run('daemon start', { env: machine });
    while (!existsSync(lease)) await wait(50);
    run('license status', { env: machine });

    console.log('$ node examples/gated-api.ts');
    for (const place of [machine, { SERVICE_LOCAL_HOME: join(customer, 'none') }]) {
      const api = await serve([join(root, 'examples/gated-api.ts')], place);
      running.push(api.child);
      const answer = await fetch(`${api.url}/orders`, { method: 'POST' });
      const where = place === machine ? 'with the lease' : 'without one';
      console.log(`POST /orders ${where}: ${answer.status} ${await answer.text()}`);
    }
    console.log();
    run('doctor', { env: machine, codes: [0, 1] });
  } finally {
    for (const child of running) {
      if (child.exitCode !== null) continue;
      child.kill();
      await once(child, 'close');
    }
    start(['daemon', 'stop'], { env: machine }, 'pipe');
  }
}

// Without a listener, a closed pipe such as that of `head` ends this process before its servers.
process.stdout.on('error', () => {});
backtest();
await license();
