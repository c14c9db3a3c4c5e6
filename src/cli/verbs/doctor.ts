import { licenseFiles } from '../../gate/license-files.ts';
import type { CheckResult, CheckStatus } from '../../doctor/run-checks.ts';
import type { Diagnosis } from '../../doctor/examine.ts';
import type { Machine } from '../../doctor/machine-facts.ts';
import type { Repair } from '../../doctor/repair.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatCountOf } from '../../base/format.ts';
import { connect } from '../connect.ts';
import type { Output } from '../output.ts';
import { defineVerb } from '../verb.ts';

const EXIT_CODES = { ok: 0, warn: 1, fail: 2 } as const;

/** Timeout of requests to the server; every check finishes in time if the network responds. */
const SERVER_MS = 5000;

export const verb = defineVerb({
  summary: 'report what is wrong with this machine and how to correct it',
  description:
    'Checks everything that this machine needs, and reports problems and their remedies. If one problem causes others, only the cause is reported. Changes nothing without --fix. Exits with 0 without problems, with 1 for warnings, with 2 for failures.',
  options: {
    fix: {
      description:
        'repair permissions, a torn lease that has a good copy, overwritten license keys, and leftover files',
    },
    offline: { description: 'send no requests to the server' },
    server: {
      description:
        'also show the size and the growth of its database, and check its notifications and its API tokens; needs a login with the scope admin',
    },
  },
  settings: ['server_url', 'catalogue_dir', 'license_product'],
  runsWithoutUserFile: true,
  examples: [
    'doctor',
    'doctor --fix',
    'doctor --server',
    'doctor --json | jq \'.checks[] | select(.status == "fail")\'',
  ],
  async run(context, _args, { fix, offline, server }) {
    if (server && offline) {
      throw new ServiceError('usage', '--server and --offline exclude each other');
    }
    const { settings, settingSources, io, message } = context;
    const { findOtherServer } = await import('../../client/other-server.ts');
    const { systemBoot } = await import('../../gate/boot.ts');
    const { examine } = await import('../../doctor/examine.ts');
    const { home } = settings;
    const files = licenseFiles(home, io.env);
    const [source, ...lesser] = settingSources.server_url;
    const { daemonFiles } = await import('../../../daemon/daemon-files.ts');
    const { readNote } = await import('../../../daemon/note.ts');
    const daemon = await readNote(daemonFiles(home).note);
    // A machine that was enrolled with --url has the address only in its enrollment.
    const known = lesser.length === 0 ? daemon?.server_url : settings.server_url;
    const isOption = source.origin.startsWith('--');
    const machine: Machine = {
      home,
      files,
      catalogueDir: settings.catalogue_dir,
      url: known ?? settings.server_url,
      insecure: settings.server_insecure,
      urlBy: isOption ? 'option' : known === undefined ? 'default' : 'machine',
      otherServer: findOtherServer(settingSources.server_url, home),
      env: io.env,
      offline,
      timeoutMs: SERVER_MS,
      clock: Date.now,
      boot: systemBoot,
      product: {
        name: settings.license_product,
        isDefault: settingSources.license_product.length === 1,
      },
      administrator: server ? () => connect(context, AbortSignal.timeout(SERVER_MS)) : undefined,
    };
    const fixed = fix
      ? await (await import('../../doctor/repair.ts')).repair(machine, message)
      : [];
    const { status, checks } = await examine(machine);
    return {
      data: { schema_version: 1, status, checks, fixed },
      show: (out) => show(out, { status, checks }, fixed),
      exitCode: EXIT_CODES[status],
    };
  },
});

/** The most important lines come last, where a terminal shows them. */
const WORST_LAST: readonly CheckStatus[] = ['skip', 'ok', 'warn', 'fail'];

function show(out: Output, { status, checks }: Diagnosis, fixed: readonly Repair[]): void {
  const { bold, dim, green, red, yellow } = out.style;
  const paint = { skip: dim, ok: green, warn: yellow, fail: red };
  for (const { path, done } of fixed) out.line(`fixed ${path}: ${done}`);
  const width = Math.max(...checks.map(({ code }) => code.length));
  const indent = ' '.repeat('fail  '.length + width);
  for (const each of WORST_LAST) {
    for (const { codes, summary, remedy } of linesOf(checks.filter((one) => one.status === each))) {
      out.line(`${paint[each](each.padEnd(4))}  ${codes.join(', ').padEnd(width)}  ${summary}`);
      if (remedy !== null) out.line(`${indent}${dim('→')} ${remedy}`);
    }
  }
  const count = (wanted: CheckStatus): number =>
    linesOf(checks.filter((one) => one.status === wanted)).length;
  const found = [
    ...(count('fail') > 0 ? [formatCountOf(count('fail'), 'failure')] : []),
    ...(count('warn') > 0 ? [formatCountOf(count('warn'), 'warning')] : []),
  ];
  out.line(bold(paint[status](found.join(', ') || 'All is well.')));
}

interface Line {
  readonly codes: string[];
  readonly summary: string;
  readonly remedy: string | null;
}

/** Combines checks with the same reason and remedy into one line, such as those without a login. */
function linesOf(checks: readonly CheckResult[]): readonly Line[] {
  const lines: Line[] = [];
  for (const { code, summary, remedy } of checks) {
    const same = lines.find((line) => line.summary === summary && line.remedy === remedy);
    if (same) same.codes.push(code);
    else lines.push({ codes: [code], summary, remedy });
  }
  return lines;
}
