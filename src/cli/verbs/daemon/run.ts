import { withInsecure, INSECURE } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'keep the license of this machine fresh, until Ctrl-C',
  description:
    'Has the lease of this machine renewed in time, again and again, and its files put right where something wrote over them. Runs until Ctrl-C or SIGTERM; SIGHUP has it look at once. It logs to stderr and to daemon.log in the home directory. For service managers it is of the type notify; see `daemon install`.',
  options: {
    logJson: { description: 'log JSON on stderr, one object a line' },
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
      // `daemon start` waits for that.
      onReady: () => process.send?.('ready', undefined, undefined, () => {}),
    });
    return { data: { home: settings.home }, show() {} };
  },
});
