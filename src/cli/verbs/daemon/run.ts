import { withInsecure, INSECURE } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'renew the lease of this machine until Ctrl-C',
  description:
    'Renews the lease of this machine in time, and restores license files that were overwritten. Runs until Ctrl-C or SIGTERM; SIGHUP triggers an immediate check. Logs to stderr and to daemon.log in the home directory. Under systemd, use the service type notify; see `daemon install`.',
  options: {
    logJson: { description: 'log in JSON on stderr, one object per line' },
    insecure: INSECURE,
  },
  settings: ['server_url'],
  examples: ['daemon run', 'daemon run --url https://licenses.example --log-json'],
  async run({ settings, io, message, signal }, _args, { logJson, insecure }) {
    const { runDaemon } = await import('../../../../daemon/daemon.ts');
    await runDaemon(withInsecure(settings, insecure), io.env, {
      signal,
      print: message,
      json: logJson,
      // `daemon start` waits for this file.
      onReady: () => process.send?.('ready', undefined, undefined, () => {}),
    });
    return { data: { home: settings.home }, show() {} };
  },
});
