# Copyright: (c) 2026, The netprobe authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
---
module: control
short_description: What a netprobe check does on the control node
version_added: 0.1.0
description:
  - Runs the C(netprobe) program on the control node.
  - It writes an engine folder, asks again, or reports.
  - This is an action plugin. It sends nothing to any host.
options:
  action:
    description: What to do.
    type: str
    required: true
    choices: [bundle, next, merge]
  program:
    description: The netprobe program, with words that stand before its arguments.
    type: str
    required: true
  folder:
    description: The engine folder. For C(bundle) one that was made before; none makes a new one.
    type: path
  matrix:
    description: Names or files of matrices.
    type: raw
  inventory:
    description: Files of the inventory; those of Ansible if not given.
    type: raw
  set:
    description: Settings of the installation.
    type: dict
  options:
    description: More words for C(netprobe bundle).
    type: raw
  report:
    description: Where C(merge) leaves reports.
    type: path
  expect_hosts:
    description: How many hosts the play must have.
    type: raw
attributes:
  check_mode:
    description: In check mode the plan is printed, and nothing else happens.
    support: full
author:
  - The netprobe authors (@netprobe)
"""

EXAMPLES = r"""
- name: Write the scripts of all hosts
  netprobe.preflight.control:
    action: bundle
    program: netprobe
    matrix: dce
  run_once: true
  delegate_to: localhost
"""

RETURN = r"""
folder:
  description: The engine folder.
  returned: for bundle
  type: str
status:
  description: The exit status of netprobe.
  returned: for merge
  type: int
headline:
  description: The first line of the report.
  returned: for merge
  type: str
"""
