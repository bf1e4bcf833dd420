# optimus sweep show --plot=pareto. To draw it again:
# gnuplot -e "set terminal svg size 1120,680 font 'sans-serif,15'; set output 'plot.svg'" THIS_FILE
if (!exists('mark')) mark = 0.65
set encoding utf8
set border 3 lw 1 lc rgb '#666666'
set tics nomirror out textcolor rgb '#222222'
set grid lt 1 lw 1 lc rgb '#e2e2e2'
set label 1 'a_test: iteration time (s) against memory of the fullest GPU (GiB)' at screen 0.02,0.955 left noenhanced font ',25'
set label 2 'only where gpus = 3072 and v = 6; low iteration_time_s and low memory_gib are good; 8 of 48 points are on the front; log y axis; all of' at screen 0.02,0.91 left noenhanced textcolor rgb '#555555'
set label 3 'the front: strategy OPTIMUS, gpus 3072, v 6' at screen 0.02,0.877 left noenhanced textcolor rgb '#555555'
set tmargin at screen 0.84
set bmargin at screen 0.12
set lmargin at screen 0.09
set rmargin at screen 0.63
unset key
set label 5 'iteration time (s)' at graph 0.5, screen 0.035 center noenhanced
set label 6 'memory of the fullest GPU (GiB)' at screen 0.018, graph 0.5 center rotate noenhanced
set xrange [5.19386127415448:7.322524954769338]
set yrange [15.20234317361579:1016.5784855338367]
set logscale y
unset mytics
set ytics ('30' 30, '100' 100, '300' 300, '1000' 1000)
set label 4 'the front, by number:' at screen 0.65,0.825 left font ',16'
set label 10 '1' at screen 0.650,0.780 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 11 '5.32 s, 396 GiB' at screen 0.680,0.780 left noenhanced 
set label 12 'tp 2, pp 2' at screen 0.680,0.754 left noenhanced font ',13' textcolor rgb '#666666'
set label 13 '2' at screen 0.650,0.716 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 14 '5.47 s, 211 GiB' at screen 0.680,0.716 left noenhanced 
set label 15 'tp 2, pp 4' at screen 0.680,0.690 left noenhanced font ',13' textcolor rgb '#666666'
set label 16 '3' at screen 0.650,0.652 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 17 '5.54 s, 118 GiB' at screen 0.680,0.652 left noenhanced 
set label 18 'tp 2, pp 8' at screen 0.680,0.626 left noenhanced font ',13' textcolor rgb '#666666'
set label 19 '4' at screen 0.650,0.588 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 20 '5.58 s, 72.2 GiB' at screen 0.680,0.588 left noenhanced 
set label 21 'tp 2, pp 16' at screen 0.680,0.562 left noenhanced font ',13' textcolor rgb '#666666'
set label 22 '5' at screen 0.650,0.524 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 23 '5.67 s, 60.2 GiB' at screen 0.680,0.524 left noenhanced 
set label 24 'tp 4, pp 8' at screen 0.680,0.498 left noenhanced font ',13' textcolor rgb '#666666'
set label 25 '6' at screen 0.650,0.460 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 26 '5.69 s, 37.1 GiB' at screen 0.680,0.460 left noenhanced 
set label 27 'tp 4, pp 16' at screen 0.680,0.434 left noenhanced font ',13' textcolor rgb '#666666'
set label 28 '7' at screen 0.650,0.396 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 29 '6.28 s, 31.1 GiB' at screen 0.680,0.396 left noenhanced 
set label 30 'tp 8, pp 8' at screen 0.680,0.370 left noenhanced font ',13' textcolor rgb '#666666'
set label 31 '8' at screen 0.650,0.332 left noenhanced font ',16' textcolor rgb '#0072b2'
set label 32 '6.29 s, 19.6 GiB' at screen 0.680,0.332 left noenhanced 
set label 33 'tp 8, pp 16' at screen 0.680,0.306 left noenhanced font ',13' textcolor rgb '#666666'
$points << EOD
6.364048840529668 790
6.838766722474112 420
7.076125663446335 235
7.194805133932446 142.5
6.0906113405296685 396
6.337464639140779 211
6.460891288446335 118.5
6.522604613099113 72.25
6.2273300905296685 199
6.360251097474113 106.5
6.426711600946335 60.25
6.459941852682447 37.125
6.8425644655296685 100.5
6.918519326640779 54.25
6.956496757196335 31.125
6.975485472474113 19.5625
5.888387884427186 790
6.268162189982742 420
6.4580493427605195 235
6.552992919149408 142.5
5.7060962177605195 396
5.903578856649409 211
6.0023201760938525 118.5
6.051690835816075 72.25
5.888387884427187 199
5.994724689982743 106.5
6.04789309276052 60.25
6.074477294149409 37.125
6.5264087177605195 100.5
6.587172606649409 54.25
6.6175545510938525 31.125
6.632745523316075 19.5625
5.412726928324704 790
5.697557657491371 420
5.839973022074704 235
5.911180704366371 142.5
5.321581094991371 396
5.469693074158038 211
5.543749063741371 118.5
5.580777058533038 72.25
5.549445678324705 199
5.629198282491372 106.5
5.669074584574705 60.25
5.689012735616372 37.125
6.210252969991371 100.5
6.255825886658038 54.25
6.278612344991371 31.125
6.290005574158038 19.5625
EOD
$front << EOD
5.321581094991371 396 "tp 2, pp 2"
5.469693074158038 211 "tp 2, pp 4"
5.543749063741371 118.5 "tp 2, pp 8"
5.580777058533038 72.25 "tp 2, pp 16"
5.669074584574705 60.25 "tp 4, pp 8"
5.689012735616372 37.125 "tp 4, pp 16"
6.278612344991371 31.125 "tp 8, pp 8"
6.290005574158038 19.5625 "tp 8, pp 16"
EOD
$numbers << EOD
5.321581094991371 396 1
5.469693074158038 211 2
5.543749063741371 118.5 3
5.580777058533038 72.25 4
5.669074584574705 60.25 5
5.689012735616372 37.125 6
6.278612344991371 31.125 7
6.290005574158038 19.5625 8
EOD
plot $points using 1:2 with points pt 7 ps 0.6*mark lc rgb '#b5b5b5', \
  $front using 1:2 with lines lw 2 lc rgb '#0072b2', \
  $front using 1:2 with points pt 7 ps mark lc rgb '#0072b2', \
  $numbers using 1:2:3 with labels font ',17' textcolor rgb '#0072b2' offset -1,-0.7
