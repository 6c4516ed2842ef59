#!/usr/bin/python3 -B
"""The reader of NWChem's output, on lines as NWChem 7.0.2 prints them. Run by nwchem_test.cpp; each test is a sentence."""

import unittest

from nwchem_output import parse

SCF = """
Total energy =     -75.918415
                 1      -75.9730172858  8.29D-01  3.47D-01      1.5
         Total SCF energy =    -76.009108035018
"""
COUPLED_CLUSTER = """
 Total MP2 energy:            -76.195337652775649
 Total CCSD energy:            -76.204343088855623
 Total SCS-CCSD energy:                 -76.251138129454390
 Total CCSD+T(CCSD) energy:            -76.206183176100126
 Total CCSD(T) energy:                 -76.206096360471051
"""
TENSOR_CONTRACTION = """
 CCSD total energy / hartree       =       -76.204343088881345
 CCSD[T] total energy / hartree       =       -76.206183176124071
 CCSD(T) total energy / hartree       =       -76.206096360495764
"""
GRADIENT = """
          Total MP2 energy           -76.195337652776
          Total SCS-MP2 energy               -76.191101761085
                         mp2 ENERGY GRADIENTS

    atom               coordinates                        gradient
                 x          y          z           x          y          z
   1 O       0.000000   0.000000   0.221665    0.000000   0.000000  -0.013530
   2 H      -1.430901   0.000000  -0.886659    0.008909   0.000000   0.006765

                 ----------------------------------------
   3 X       9.000000   9.000000   9.000000    9.000000   9.000000   9.000000
"""
FREQUENCIES = """
 Frequency         -5.00        0.00        0.00        0.00        0.00        0.00
 P.Frequency       -0.00        0.00        0.00        0.00        0.00        0.00
 P.Frequency     1860.71     3919.79     4032.65
 Total times  cpu:        0.2s     wall:        1.3s
"""


class Reader(unittest.TestCase):
    def test_takes_the_scf_energy_and_no_guess_or_iteration(self):
        self.assertEqual(parse(SCF).energies, {"SCF": -76.009108035018})

    def test_takes_the_last_energy_of_an_output_with_several(self):
        self.assertEqual(parse(SCF + SCF.replace("-76.009", "-76.008")).energies, {"SCF": -76.008108035018})

    def test_takes_both_coupled_cluster_modules_and_no_scaled_energy(self):
        self.assertEqual(parse(COUPLED_CLUSTER).energies,
                         {"MP2": -76.195337652775649, "CCSD": -76.204343088855623, "CCSD(T)": -76.206096360471051})
        self.assertEqual(parse(TENSOR_CONTRACTION).energies, {"CCSD": -76.204343088881345, "CCSD(T)": -76.206096360495764})

    def test_takes_the_gradient_and_stops_at_the_end_of_its_table(self):
        output = parse(GRADIENT)
        self.assertEqual(output.gradient, [0, 0, -0.013530, 0.008909, 0, 0.006765])
        self.assertEqual(output.energies, {"MP2": -76.195337652776})

    def test_takes_projected_frequencies_and_the_times(self):
        output = parse(FREQUENCIES)
        self.assertEqual(output.frequencies, [0] * 6 + [1860.71, 3919.79, 4032.65])
        self.assertEqual((output.cpu_s, output.wall_s), (0.2, 1.3))

    def test_finds_nothing_in_an_output_that_broke_off(self):
        output = parse("Total energy =     -75.918415\nAbort(268) on node 0\n")
        self.assertEqual((output.energies, output.gradient, output.frequencies, output.wall_s), ({}, [], [], None))


unittest.main()
