import type { VerbEntry } from './verb.ts';

/** Every verb, in the order in which help lists them. */
export const VERBS: readonly VerbEntry[] = [
  {
    path: ['init'],
    summary: 'write a bot that runs at once',
    load: () => import('./verbs/init.ts'),
  },
  {
    path: ['validate'],
    summary: 'check bot files and tell every problem',
    load: () => import('./verbs/validate.ts'),
  },
  {
    path: ['backtest'],
    summary: 'run a bot over its history and report what came of it',
    load: () => import('./verbs/backtest.ts'),
  },
  {
    path: ['backtest', 'sweep'],
    summary: 'run a bot with every combination of parameters',
    load: () => import('./verbs/backtest-sweep.ts'),
  },
  {
    path: ['data', 'import'],
    summary: 'check the bars of a file and keep them in the catalogue',
    load: () => import('./verbs/data-import.ts'),
  },
  {
    path: ['data', 'list'],
    summary: 'list the datasets of the catalogue',
    load: () => import('./verbs/data-list.ts'),
  },
  {
    path: ['data', 'show'],
    summary: 'say what a dataset holds and where it came from',
    load: () => import('./verbs/data-show.ts'),
  },
  {
    path: ['data', 'verify'],
    summary: 'check that datasets still are what was imported',
    load: () => import('./verbs/data-verify.ts'),
  },
  {
    path: ['server'],
    summary: 'serve the hosted side: bots and their backtests, licenses and devices',
    load: () => import('./verbs/server.ts'),
  },
  {
    path: ['server', 'adopt'],
    summary: "allow trading with a copied or moved database; run on the server's machine",
    load: () => import('./verbs/server-adopt.ts'),
  },
  {
    path: ['server', 'backup'],
    summary: 'copy the whole database to a file, while servers run',
    load: () => import('./verbs/server-backup.ts'),
  },
  {
    path: ['server', 'restore'],
    summary: 'restore a backup, with all trading halted',
    load: () => import('./verbs/server-restore.ts'),
  },
  {
    path: ['worker'],
    summary: 'do the backtests and paper sessions of servers that share a PostgreSQL',
    load: () => import('./verbs/worker.ts'),
  },
  {
    path: ['run'],
    summary: 'trade a deployment of a bot: what a pod in a cluster does',
    load: () => import('./verbs/run.ts'),
  },
  {
    path: ['login'],
    summary: 'log in to a server, for the verbs that ask it',
    load: () => import('./verbs/login.ts'),
  },
  {
    path: ['logout'],
    summary: 'end the login',
    load: () => import('./verbs/logout.ts'),
  },
  {
    path: ['whoami'],
    summary: 'say who is logged in, and for what',
    load: () => import('./verbs/whoami.ts'),
  },
  {
    path: ['bots', 'list'],
    summary: 'list the bots of the server',
    load: () => import('./verbs/bots-list.ts'),
  },
  {
    path: ['bots', 'get'],
    summary: 'show a bot of the server',
    load: () => import('./verbs/bots-get.ts'),
  },
  {
    path: ['bots', 'create'],
    summary: 'make a bot on the server from a file',
    load: () => import('./verbs/bots-create.ts'),
  },
  {
    path: ['bots', 'apply'],
    summary: 'create or update bots of the server, as their files say',
    load: () => import('./verbs/bots-apply.ts'),
  },
  {
    path: ['bots', 'update'],
    summary: 'give a bot of the server a new version',
    load: () => import('./verbs/bots-update.ts'),
  },
  {
    path: ['bots', 'delete'],
    summary: 'archive a bot of the server',
    load: () => import('./verbs/bots-delete.ts'),
  },
  {
    path: ['bots', 'versions'],
    summary: 'list the versions of a bot',
    load: () => import('./verbs/bots-versions.ts'),
  },
  {
    path: ['bots', 'diff'],
    summary: 'say what differs between two versions, or two files',
    load: () => import('./verbs/bots-diff.ts'),
  },
  {
    path: ['bots', 'snapshot'],
    summary: 'show the state of a bot, now or at another moment',
    load: () => import('./verbs/bots-snapshot.ts'),
  },
  {
    path: ['bots', 'events'],
    summary: 'show the events of a bot',
    load: () => import('./verbs/bots-events.ts'),
  },
  {
    path: ['bots', 'events', 'verify'],
    summary: 'check that nobody tampered with the events of a bot',
    load: () => import('./verbs/bots-events-verify.ts'),
  },
  {
    path: ['bots', 'replay'],
    summary: 'make the state of a bot, or what a paper session did, anew from its events',
    load: () => import('./verbs/bots-replay.ts'),
  },
  {
    path: ['bots', 'parity'],
    summary: 'compare a paper session with a backtest, and tell where they part',
    load: () => import('./verbs/bots-parity.ts'),
  },
  {
    path: ['bots', 'chat'],
    summary: 'ask a research bot, or one of its agents',
    load: () => import('./verbs/bots-chat.ts'),
  },
  {
    path: ['bots', 'agents', 'list'],
    summary: 'list the agents of a research bot, with their last reports',
    load: () => import('./verbs/bots-agents-list.ts'),
  },
  {
    path: ['bots', 'agents', 'start'],
    summary: 'have an agent asked by itself, as its schedule says',
    load: () => import('./verbs/bots-agents-start.ts'),
  },
  {
    path: ['bots', 'agents', 'stop'],
    summary: 'have an agent not asked by itself any more',
    load: () => import('./verbs/bots-agents-stop.ts'),
  },
  {
    path: ['bots', 'agents', 'run'],
    summary: 'ask an agent now what its schedule asks',
    load: () => import('./verbs/bots-agents-run.ts'),
  },
  {
    path: ['bots', 'backtest'],
    summary: 'backtest a bot on the server, over the data of its catalogue',
    load: () => import('./verbs/bots-backtest.ts'),
  },
  {
    path: ['bots', 'paper', 'start'],
    summary: 'trade a bot on paper, on the server',
    load: () => import('./verbs/bots-paper-start.ts'),
  },
  {
    path: ['bots', 'paper', 'stop'],
    summary: 'end a paper session with what it has come to',
    load: () => import('./verbs/bots-paper-stop.ts'),
  },
  {
    path: ['bots', 'paper', 'status'],
    summary: 'show where the paper sessions of a bot are',
    load: () => import('./verbs/bots-paper-status.ts'),
  },
  {
    path: ['bots', 'deploy'],
    summary: 'put a bot to work in a Kubernetes cluster',
    load: () => import('./verbs/bots-deploy.ts'),
  },
  {
    path: ['bots', 'deploy', 'status'],
    summary: 'show what a cluster and its runner say of a bot',
    load: () => import('./verbs/bots-deploy-status.ts'),
  },
  {
    path: ['bots', 'deploy', 'stop'],
    summary: 'end a deployment to a cluster, its orders first',
    load: () => import('./verbs/bots-deploy-stop.ts'),
  },
  {
    path: ['bots', 'deploy', 'rollback'],
    summary: 'replace what is deployed by an earlier version',
    load: () => import('./verbs/bots-deploy-rollback.ts'),
  },
  {
    path: ['bots', 'halt'],
    summary: 'end all trading of a bot, and verify that it has ended',
    load: () => import('./verbs/bots-halt.ts'),
  },
  {
    path: ['bots', 'halt-all'],
    summary: 'end all trading of all bots, and verify that it has ended',
    load: () => import('./verbs/bots-halt-all.ts'),
  },
  {
    path: ['bots', 'halts'],
    summary: 'list the halts, those in force first',
    load: () => import('./verbs/bots-halts.ts'),
  },
  {
    path: ['bots', 'resume'],
    summary: 'let a bot that is halted be started again',
    load: () => import('./verbs/bots-resume.ts'),
  },
  {
    path: ['bots', 'resume-all'],
    summary: 'let bots be started again after halt-all',
    load: () => import('./verbs/bots-resume-all.ts'),
  },
  {
    path: ['bots', 're-enable'],
    summary: 'let a bot trade again after repeated execution',
    load: () => import('./verbs/bots-re-enable.ts'),
  },
  {
    path: ['bots', 'conformance'],
    summary: 'test how a bot trades at a simulated venue',
    load: () => import('./verbs/bots-conformance.ts'),
  },
  {
    path: ['bots', 'stress'],
    summary: 'test a bot at twice the busiest of its last six months',
    load: () => import('./verbs/bots-stress.ts'),
  },
  {
    path: ['bots', 'overrides', 'request'],
    summary: 'ask that one order of a bot may pass a limit',
    load: () => import('./verbs/bots-overrides-request.ts'),
  },
  {
    path: ['bots', 'overrides', 'list'],
    summary: 'list the overrides of a bot',
    load: () => import('./verbs/bots-overrides-list.ts'),
  },
  {
    path: ['bots', 'overrides', 'verify'],
    summary: 'verify an override, as risk',
    load: () => import('./verbs/bots-overrides-verify.ts'),
  },
  {
    path: ['bots', 'overrides', 'authorise'],
    summary: 'authorise an override that risk has verified',
    load: () => import('./verbs/bots-overrides-authorise.ts'),
  },
  {
    path: ['bots', 'validation-report'],
    summary: 'draft the facts about a bot for the yearly self-assessment of RTS 6',
    load: () => import('./verbs/bots-validation-report.ts'),
  },
  {
    path: ['bots', 'validation-report', 'list'],
    summary: 'list the versions of such a report that were frozen',
    load: () => import('./verbs/bots-validation-report-list.ts'),
  },
  {
    path: ['bots', 'validation-report', 'freeze'],
    summary: 'keep such a report as it is, with what people have put into it',
    load: () => import('./verbs/bots-validation-report-freeze.ts'),
  },
  {
    path: ['bots', 'validation-report', 'attest'],
    summary: 'stand for the content of a frozen report, in one role',
    load: () => import('./verbs/bots-validation-report-attest.ts'),
  },
  {
    path: ['bots', 'drill'],
    summary: 'try on a bot made for it that halting works, and say how long it takes',
    load: () => import('./verbs/bots-drill.ts'),
  },
  {
    path: ['bots', 'deployments'],
    summary: 'list what a bot was put to use for',
    load: () => import('./verbs/bots-deployments.ts'),
  },
  {
    path: ['mcp'],
    summary: 'let an assistant use the tools of research bots',
    load: () => import('./verbs/mcp.ts'),
  },
  {
    path: ['knowledge', 'add'],
    summary: 'have the server know what stands in files',
    load: () => import('./verbs/knowledge-add.ts'),
  },
  {
    path: ['knowledge', 'list'],
    summary: 'list the documents that the server knows',
    load: () => import('./verbs/knowledge-list.ts'),
  },
  {
    path: ['knowledge', 'show'],
    summary: 'show a document, or some lines of it',
    load: () => import('./verbs/knowledge-show.ts'),
  },
  {
    path: ['knowledge', 'remove'],
    summary: 'have the server forget a document',
    load: () => import('./verbs/knowledge-remove.ts'),
  },
  {
    path: ['knowledge', 'search'],
    summary: 'find passages of documents by their words',
    load: () => import('./verbs/knowledge-search.ts'),
  },
  {
    path: ['risk', 'thresholds', 'list'],
    summary: 'list the thresholds of clients, instruments, traders, desks and the firm',
    load: () => import('./verbs/risk-thresholds-list.ts'),
  },
  {
    path: ['risk', 'thresholds', 'set'],
    summary: 'set a threshold, for all sessions that it is about',
    load: () => import('./verbs/risk-thresholds-set.ts'),
  },
  {
    path: ['risk', 'thresholds', 'remove'],
    summary: 'remove a threshold',
    load: () => import('./verbs/risk-thresholds-remove.ts'),
  },
  {
    path: ['tasks', 'list'],
    summary: 'list what the server works on, or has worked on',
    load: () => import('./verbs/tasks-list.ts'),
  },
  {
    path: ['tasks', 'get'],
    summary: 'show a task',
    load: () => import('./verbs/tasks-get.ts'),
  },
  {
    path: ['tasks', 'result'],
    summary: 'show what came of a task, or wait for it',
    load: () => import('./verbs/tasks-result.ts'),
  },
  {
    path: ['tasks', 'cancel'],
    summary: 'end a task before its time',
    load: () => import('./verbs/tasks-cancel.ts'),
  },
  {
    path: ['identity', 'administrators', 'add'],
    summary: "let somebody administer the server; on the server's machine",
    load: () => import('./verbs/identity-administrators-add.ts'),
  },
  {
    path: ['identity', 'administrators', 'list'],
    summary: "list the administrators; on the server's machine",
    load: () => import('./verbs/identity-administrators-list.ts'),
  },
  {
    path: ['identity', 'administrators', 'disable'],
    summary: "keep an administrator out; on the server's machine",
    load: () => import('./verbs/identity-administrators-disable.ts'),
  },
  {
    path: ['identity', 'administrators', 'reset'],
    summary: "make password and codes anew; on the server's machine",
    load: () => import('./verbs/identity-administrators-reset.ts'),
  },
  {
    path: ['identity', 'tokens', 'create'],
    summary: 'log in, for a token that a script can have',
    load: () => import('./verbs/identity-tokens-create.ts'),
  },
  {
    path: ['identity', 'tokens', 'list'],
    summary: 'list the tokens',
    load: () => import('./verbs/identity-tokens-list.ts'),
  },
  {
    path: ['identity', 'tokens', 'revoke'],
    summary: 'end a token',
    load: () => import('./verbs/identity-tokens-revoke.ts'),
  },
  {
    path: ['identity', 'sessions', 'list'],
    summary: 'list the browsers in which somebody is signed in',
    load: () => import('./verbs/identity-sessions-list.ts'),
  },
  {
    path: ['identity', 'sessions', 'end'],
    summary: 'sign a browser out of the console, or all of your own',
    load: () => import('./verbs/identity-sessions-end.ts'),
  },
  {
    path: ['identity', 'passkeys', 'list'],
    summary: 'list your passkeys',
    load: () => import('./verbs/identity-passkeys-list.ts'),
  },
  {
    path: ['identity', 'passkeys', 'rename'],
    summary: 'give a passkey another name',
    load: () => import('./verbs/identity-passkeys-rename.ts'),
  },
  {
    path: ['identity', 'passkeys', 'delete'],
    summary: 'delete a passkey for good',
    load: () => import('./verbs/identity-passkeys-delete.ts'),
  },
  {
    path: ['identity', 'audit', 'list'],
    summary: 'show who did what',
    load: () => import('./verbs/identity-audit-list.ts'),
  },
  {
    path: ['identity', 'audit', 'verify'],
    summary: 'check that nobody tampered with the audit log',
    load: () => import('./verbs/identity-audit-verify.ts'),
  },
  {
    path: ['identity', 'customers', 'create'],
    summary: 'register a customer',
    load: () => import('./verbs/identity-customers-create.ts'),
  },
  {
    path: ['identity', 'customers', 'list'],
    summary: 'list the customers',
    load: () => import('./verbs/identity-customers-list.ts'),
  },
  {
    path: ['identity', 'plans', 'create'],
    summary: 'make a plan: features, and how long leases last',
    load: () => import('./verbs/identity-plans-create.ts'),
  },
  {
    path: ['identity', 'plans', 'update'],
    summary: 'change a plan',
    load: () => import('./verbs/identity-plans-update.ts'),
  },
  {
    path: ['identity', 'plans', 'list'],
    summary: 'list the plans',
    load: () => import('./verbs/identity-plans-list.ts'),
  },
  {
    path: ['identity', 'contracts', 'create'],
    summary: 'register what a customer has bought, and until when',
    load: () => import('./verbs/identity-contracts-create.ts'),
  },
  {
    path: ['identity', 'contracts', 'update'],
    summary: 'change, extend or end a contract',
    load: () => import('./verbs/identity-contracts-update.ts'),
  },
  {
    path: ['identity', 'contracts', 'list'],
    summary: 'list the contracts',
    load: () => import('./verbs/identity-contracts-list.ts'),
  },
  {
    path: ['identity', 'deployments', 'create'],
    summary: 'register an installation, which then gets leases',
    load: () => import('./verbs/identity-deployments-create.ts'),
  },
  {
    path: ['identity', 'deployments', 'reinstate'],
    summary: 'take back that a deployment was revoked',
    load: () => import('./verbs/identity-deployments-reinstate.ts'),
  },
  {
    path: ['identity', 'deployments', 'list'],
    summary: 'list the deployments',
    load: () => import('./verbs/identity-deployments-list.ts'),
  },
  {
    path: ['identity', 'devices', 'enroll-code'],
    summary: 'make a code with which a machine becomes a device',
    load: () => import('./verbs/identity-devices-enroll-code.ts'),
  },
  {
    path: ['identity', 'devices', 'list'],
    summary: 'list the devices',
    load: () => import('./verbs/identity-devices-list.ts'),
  },
  {
    path: ['identity', 'devices', 'revoke'],
    summary: 'refuse a device from now on',
    load: () => import('./verbs/identity-devices-revoke.ts'),
  },
  {
    path: ['license', 'enroll'],
    summary: 'make this machine a device, and get its first lease',
    load: () => import('./verbs/license-enroll.ts'),
  },
  {
    path: ['license', 'rotate-key'],
    summary: 'give this device a new key',
    load: () => import('./verbs/license-rotate-key.ts'),
  },
  {
    path: ['license', 'status'],
    summary: 'say until when everything works',
    load: () => import('./verbs/license-status.ts'),
  },
  {
    path: ['license', 'renew'],
    summary: 'get the next lease, when it is due',
    load: () => import('./verbs/license-renew.ts'),
  },
  {
    path: ['license', 'needs-renewal'],
    summary: 'tell a script whether the lease is due for renewal',
    load: () => import('./verbs/license-needs-renewal.ts'),
  },
  {
    path: ['license', 'verify'],
    summary: 'check a lease, and say what it is worth',
    load: () => import('./verbs/license-verify.ts'),
  },
  {
    path: ['license', 'export-request'],
    summary: 'ask for a lease on a machine without a network',
    load: () => import('./verbs/license-export-request.ts'),
  },
  {
    path: ['license', 'import'],
    summary: 'put a lease that was brought into its place',
    load: () => import('./verbs/license-import.ts'),
  },
  {
    path: ['license', 'materialize'],
    summary: 'write the lease that a container was started with to its file',
    load: () => import('./verbs/license-materialize.ts'),
  },
  {
    path: ['daemon', 'run'],
    summary: 'keep the license of this machine fresh, until Ctrl-C',
    load: () => import('./verbs/daemon-run.ts'),
  },
  {
    path: ['daemon', 'start'],
    summary: 'let the daemon run in the background',
    load: () => import('./verbs/daemon-start.ts'),
  },
  {
    path: ['daemon', 'stop'],
    summary: 'end the daemon, and wait until it is gone',
    load: () => import('./verbs/daemon-stop.ts'),
  },
  {
    path: ['daemon', 'status'],
    summary: 'say whether the daemon runs, and when it asks for a lease next',
    load: () => import('./verbs/daemon-status.ts'),
  },
  {
    path: ['daemon', 'logs'],
    summary: 'show what the daemon logged',
    load: () => import('./verbs/daemon-logs.ts'),
  },
  {
    path: ['daemon', 'install'],
    summary: 'let the service manager of this machine run the daemon',
    load: () => import('./verbs/daemon-install.ts'),
  },
  {
    path: ['daemon', 'uninstall'],
    summary: 'take the daemon from the service manager again',
    load: () => import('./verbs/daemon-uninstall.ts'),
  },
  {
    path: ['identity', 'licenses', 'list'],
    summary: 'list the deployments, each with its newest lease',
    load: () => import('./verbs/identity-licenses-list.ts'),
  },
  {
    path: ['identity', 'leases', 'issue'],
    summary: 'issue a lease for a machine that cannot renew by itself',
    load: () => import('./verbs/identity-leases-issue.ts'),
  },
  {
    path: ['identity', 'leases', 'list'],
    summary: 'list the leases of the registry',
    load: () => import('./verbs/identity-leases-list.ts'),
  },
  {
    path: ['identity', 'leases', 'show'],
    summary: 'show a lease of the registry',
    load: () => import('./verbs/identity-leases-show.ts'),
  },
  {
    path: ['identity', 'leases', 'revoke'],
    summary: 'deny renewal, by lease or by deployment',
    load: () => import('./verbs/identity-leases-revoke.ts'),
  },
  {
    path: ['identity', 'root', 'init'],
    summary: 'make the root keys that vouch for signing keys, and the first root',
    load: () => import('./verbs/identity-root-init.ts'),
  },
  {
    path: ['identity', 'root', 'show'],
    summary: 'show the fingerprint, versions and expiry of a root and its keyset',
    load: () => import('./verbs/identity-root-show.ts'),
  },
  {
    path: ['identity', 'root', 'sign-keyset'],
    summary: 'sign the keys that verify leases with root keys, and upload them',
    load: () => import('./verbs/identity-root-sign-keyset.ts'),
  },
  {
    path: ['identity', 'root', 'rotate'],
    summary: 'make the next root, signed by the current root and by its own keys',
    load: () => import('./verbs/identity-root-rotate.ts'),
  },
  {
    path: ['identity', 'keys', 'generate'],
    summary: 'make a key that signs leases',
    load: () => import('./verbs/identity-keys-generate.ts'),
  },
  {
    path: ['identity', 'keys', 'announce'],
    summary: 'have the current signing key vouch for the next, without a trust root',
    load: () => import('./verbs/identity-keys-announce.ts'),
  },
  {
    path: ['identity', 'keys', 'list'],
    summary: 'list the keys that sign, and those that did',
    load: () => import('./verbs/identity-keys-list.ts'),
  },
  {
    path: ['identity', 'keys', 'rotate-status'],
    summary: 'say how far the rotation of keys is',
    load: () => import('./verbs/identity-keys-rotate-status.ts'),
  },
  {
    path: ['identity', 'keys', 'retire'],
    summary: 'take a key out of use for good',
    load: () => import('./verbs/identity-keys-retire.ts'),
  },
  {
    path: ['cloud', 'seed'],
    summary: 'issue a lease and write it to the secret store of a customer',
    load: () => import('./verbs/cloud-seed.ts'),
  },
  {
    path: ['cloud', 'preflight'],
    summary: 'check the secrets of a customer before a deployment',
    load: () => import('./verbs/cloud-preflight.ts'),
  },
  {
    path: ['cloud', 'redeploy'],
    summary: 'have the services of a customer read the secrets',
    load: () => import('./verbs/cloud-redeploy.ts'),
  },
  {
    path: ['cloud', 'status'],
    summary: 'say which lease a customer runs with, and by when to act',
    load: () => import('./verbs/cloud-status.ts'),
  },
  {
    path: ['cloud', 'renew'],
    summary: 'seed, redeploy and verify, when it is due',
    load: () => import('./verbs/cloud-renew.ts'),
  },
  {
    path: ['cloud', 'iam'],
    summary: 'print what each role must be allowed',
    load: () => import('./verbs/cloud-iam.ts'),
  },
  {
    path: ['doctor'],
    summary: 'say what is wrong with this machine, and what to do about it',
    load: () => import('./verbs/doctor.ts'),
  },
  {
    path: ['schema'],
    summary: 'print the JSON Schema of bot files',
    load: () => import('./verbs/schema.ts'),
  },
  {
    path: ['config', 'list'],
    summary: 'list the settings in force and where each comes from',
    load: () => import('./verbs/config-list.ts'),
  },
  {
    path: ['config', 'explain'],
    summary: 'say which source decides a setting, and which ones lost',
    load: () => import('./verbs/config-explain.ts'),
  },
  {
    path: ['completion'],
    summary: 'print the completion script for a shell',
    load: () => import('./verbs/completion.ts'),
  },
];
