import { withInsecure, INSECURE } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'let the service manager of this machine run the daemon',
  description:
    'Has the service manager of this machine (systemd, on macOS launchd) run the daemon: start it with the login of this user, or with --system with the machine, and again when it breaks. The service gets the home directory, the paths of lease and keyset, SERVICE_LICENSE_ROOT, the proxies and NODE_EXTRA_CA_CERTS of the environment in which this is run, but nothing that holds a password.',
  options: {
    system: { description: 'for the machine, which takes root, and not for this user' },
    print: { description: "print the service's file and install nothing" },
    insecure: INSECURE,
  },
  settings: ['server_url'],
  examples: [
    'daemon install',
    'daemon install --print > service-local.service',
    'daemon install --system',
  ],
  async run(context, _args, { system, print, insecure }) {
    const { refuseInsecure } = await import('../../../client/insecure-http.ts');
    const { serviceManager } = await import('../../../../daemon/service-unit.ts');
    const { installService, thisService } = await import('../../service.ts');
    const scope = system ? 'system' : 'user';
    const { io, message } = context;
    const settings = withInsecure(context.settings, insecure);
    refuseInsecure(settings.server_url, settings.server_insecure);
    const manager = serviceManager(process.platform, scope, io.env);
    const { service, owner, warnings } = await thisService(scope, {
      ...context,
      settings,
    });
    const text = manager.describe(service);
    for (const warning of warnings) message(warning);
    if (!print) await installService(manager, service, { home: settings.home, owner });
    return {
      data: { installed: !print, scope, path: manager.path, text },
      show(out) {
        if (print) {
          out.line(text.trimEnd());
          return;
        }
        out.line(`${manager.path} is written, and the daemon runs.`);
        if (!system && process.platform === 'linux') {
          out.line(
            'It runs while this user is logged in; `loginctl enable-linger` lets it run on.',
          );
        }
      },
    };
  },
});
