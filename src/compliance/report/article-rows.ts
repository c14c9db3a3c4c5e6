import { ARTICLES } from '../articles.ts';
import { human } from './report-fields.ts';
import type { Gap, Report } from './validation-report.ts';

/** JSON pointers to the parts of the report that concern a paragraph or all paragraphs of an article. */
const EVIDENCE: Readonly<Record<string, readonly string[]>> = {
  '1': ['/governance/accountability_map', '/governance/separation_evidence'],
  '2': ['/governance/holders_of_halt', '/governance/compliance_kill_access_2_2'],
  '3': ['/governance/staff_skills_training'],
  '4': ['/governance/outsourcing_4', '/inventory/third_party'],
  '5': ['/testing/methodology_ref', '/governance/designated_approvers'],
  '5(7)': ['/changes'],
  '6': ['/testing/conformance', '/testing/venue_report_ref'],
  '7': ['/testing/env_separation_7'],
  '8': ['/risk_controls', '/inventory/facts'],
  '9': ['/attestations', '/deficiencies', '/summary'],
  '10': ['/testing/stress'],
  '11': ['/changes'],
  '12': ['/kill/live_activations', '/kill/drills'],
  '12(3)': ['/kill/attribution_coverage'],
  '13': ['/surveillance'],
  '14': ['/testing/bcp_test_14_4', '/kill/policy_ref'],
  '15': ['/risk_controls', '/pretrade/breaches', '/pretrade/limit_changes'],
  '15(3)': ['/pretrade/throttle_disables_15_3', '/risk_controls'],
  '15(6)': ['/pretrade/overrides_15_6', '/risk_controls'],
  '16': ['/monitoring/alerts', '/monitoring/coverage_gaps', '/monitoring/contact_test_16_4'],
  '17': ['/posttrade/breaks', '/posttrade/real_time_pct'],
  '17(4)': ['/posttrade/position_limits_17_4'],
  '18': ['/testing/pen_test_18_4', '/testing/vuln_scan_18_4'],
};

/** Lists each paragraph of RTS 6 with its evidence and gaps; people assess it later. */
export function listArticleRows(gaps: readonly Gap[]): Report['articles'] {
  return ARTICLES.filter(
    ({ instrument, ref }) => instrument === 'RTS 6' && !ref.startsWith('I'),
  ).map(({ ref, requirement }) => ({
    id: ref,
    requirement,
    status: 'not_assessed',
    auto_suggested: 'not_assessed',
    final: human(),
    evidence: EVIDENCE[ref] ?? EVIDENCE[ref.replace(/\(.*$/, '')] ?? [],
    gaps: gaps
      .filter(({ articles }) => articles.some((one) => isRelated(one, ref)))
      .map(({ id }) => id),
    narrative: human(),
  }));
}

/** Whether two citations are equal or one contains the other: a gap in 15(1)(a) is one in 15(1), and vice versa. */
function isRelated(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}(`) || other.startsWith(`${one}(`);
}
