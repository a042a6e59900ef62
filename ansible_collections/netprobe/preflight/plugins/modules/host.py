# Copyright: (c) 2026, The netprobe authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
---
module: host
short_description: One step of a netprobe check on one host
version_added: 0.1.0
description:
  - Runs the command that an engine folder has for this step, with the host's orders as its input,
    and keeps what the host prints in the folder.
  - This is an action plugin. It sends no module, needs no Python on the host, and leaves no file.
  - A connection that carries no input gets the orders as a temporary file first.
options:
  step:
    description: Which step.
    type: str
    required: true
    choices: [start, next, go, wait, collect, stop, halt]
  round:
    description: The round that the step belongs to.
    type: int
    default: 1
  folder:
    description: The engine folder on the control node.
    type: path
    required: true
attributes:
  check_mode:
    description: In check mode nothing is sent.
    support: full
author:
  - The netprobe authors (@netprobe)
"""

EXAMPLES = r"""
- name: Open listeners
  netprobe.preflight.host:
    step: start
    folder: "{{ netprobe_bundle.folder }}"
"""

RETURN = r"""
bytes:
  description: How many characters the host printed.
  returned: success
  type: int
"""
